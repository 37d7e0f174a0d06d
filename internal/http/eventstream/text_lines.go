package eventstream

// textLines is the form for those who read lines of text, such as logs with curl: the data of
// events that are called line, and nothing else.
type textLines struct{}

func (textLines) Relists() bool { return false }

func (textLines) Encode(buf []byte, e Event) []byte {
	if e.Kind != KindNamed || e.Name != "line" {
		return buf
	}
	return append(append(buf, e.Data...), '\n')
}

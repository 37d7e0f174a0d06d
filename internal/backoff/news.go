package backoff

// News is the error that a loop has logged last. The zero value has logged none. It is for one goroutine.
type News struct{ told string }

// Is reports whether an error is to be logged: it is another one than the last.
func (n *News) Is(err error) bool {
	text := err.Error()
	if text == n.told {
		return false
	}
	n.told = text
	return true
}

// Over says that the trouble is over. It reports whether any was logged.
func (n *News) Over() (told bool) {
	told = n.told != ""
	n.told = ""
	return told
}

package jobs

import "time"

// Time is a moment in milliseconds since 1970, which all databases keep in the same way; 0: it has not happened.
type Time int64

// At is a moment as a Time. The zero time.Time is 0.
func At(t time.Time) Time {
	if t.IsZero() {
		return 0
	}
	return Time(t.UnixMilli())
}

// Std is the moment in UTC. 0 is the zero time.Time.
func (t Time) Std() time.Time {
	if t == 0 {
		return time.Time{}
	}
	return time.UnixMilli(int64(t)).UTC()
}

// MarshalJSON writes RFC 3339, or null for what has not happened.
func (t Time) MarshalJSON() ([]byte, error) {
	if t == 0 {
		return []byte("null"), nil
	}
	return t.Std().MarshalJSON()
}

// UnmarshalJSON reads what MarshalJSON writes.
func (t *Time) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*t = 0
		return nil
	}
	var at time.Time
	if err := at.UnmarshalJSON(text); err != nil {
		return err
	}
	*t = At(at)
	return nil
}

// ParseTime reads a time as Kubernetes writes it; 0 if the text is no time, or none after 1970.
func ParseTime(text string) Time {
	if text == "" {
		return 0
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.Unix() <= 0 {
		return 0
	}
	return At(at)
}

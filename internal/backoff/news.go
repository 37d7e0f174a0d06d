package backoff

import "regexp"

// News is the error that a loop has logged last. The zero value has logged none. It is for one goroutine.
type News struct{ told string }

// ownPort is the port of this end of a connection, in the texts of package net.
var ownPort = regexp.MustCompile(`:\d+->`)

// Is reports whether an error is to be logged: it is another one than the last. That another connection had it is no
// news: a database that is away would be told each second.
func (n *News) Is(err error) bool {
	text := ownPort.ReplaceAllString(err.Error(), "->")
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

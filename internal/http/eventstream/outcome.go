package eventstream

// Outcome is what has come of a step in serving a stream: whether it goes on, and if not, why it ends.
type Outcome uint8

const (
	// GoOn means that the stream goes on.
	GoOn Outcome = iota
	// WouldBlock means that the stream goes on, but that the next step may wait, or takes long. A
	// worker leaves it to a goroutine of the session's own.
	WouldBlock

	// ClientGone ends a stream whose client has left.
	ClientGone
	// AfterError ends a stream whose client was told an error that ends it.
	AfterError
	endPanic // the goroutine that served the stream panicked

	// The ends that are told with the event goodbye.
	endDrain
	endAge
	endExpired
	endRevoked
	// Limit ends a stream that asks for more than its caller may have.
	Limit
	// Unavailable ends a stream whose source cannot be read for now.
	Unavailable
	// Gone ends a stream whose source is no longer served.
	Gone
)

var outcomes = [...]string{
	GoOn: "on", WouldBlock: "wait", ClientGone: "left", AfterError: "told", endPanic: "panic", endDrain: "drain", endAge: "age",
	endExpired: "expired", endRevoked: "revoked", Limit: "limit", Unavailable: "unavailable", Gone: "gone",
}

// String is the reason in the event goodbye, and in the log and the metrics.
func (o Outcome) String() string { return outcomes[o] }

// ends reports whether the stream is over.
func (o Outcome) ends() bool { return o > WouldBlock }

// hasGoodbye reports whether the client is told why the stream ends.
func (o Outcome) hasGoodbye() bool { return o >= endDrain }

// isPlanned reports whether the client is to come back and go on where it was. It is then told its position last.
func (o Outcome) isPlanned() bool { return o == endDrain || o == endAge || o == endExpired }

package eventstream

// Reasons of the event reset: why a client has missed something.
const (
	ResetExpired    = "expired"
	ResetEpoch      = "epoch"
	ResetAhead      = "ahead"
	ResetUnreadable = "unreadable"
	ResetSlow       = "slow"
)

package http

// Limits bound what is open or under way at a time; 0 is no limit.
type Limits struct {
	PerUser    int // streams
	PerAddress int
	Total      int

	WatchesPerUser    int // over all streams
	RequestsPerUser   int // lists and gets; more wait, see package ratelimit
	RequestsPerSecond int // of any kind, of one user; more wait, see package ratelimit
}

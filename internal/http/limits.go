package http

import "github.com/kubecast/kubecast/internal/http/eventstream"

// Limits bound what is open or under way at a time; 0 is no limit.
type Limits struct {
	PerUser    int // streams
	PerAddress int
	Total      int

	WatchesPerUser    int // over all streams
	RequestsPerUser   int // lists and gets; more wait, see package ratelimit
	RequestsPerSecond int // of any kind, of one user; more wait, see package ratelimit

	Connections ConnectionLimits
	Logs        LogLimits // that are read at a time

	// Gateways are the usernames of other gateways, for which limits of single users and addresses are none.
	Gateways []string
}

func (l Limits) ofStreams() eventstream.Limits {
	return eventstream.Limits{PerUser: l.PerUser, PerAddress: l.PerAddress, Total: l.Total, WatchesPerUser: l.WatchesPerUser}
}

// SetLimits changes the limits. What is open or under way beyond them goes on.
func (s *Server) SetLimits(limits Limits) {
	s.signin.SetGateways(limits.Gateways)
	s.streams.SetLimits(limits.ofStreams())
	s.connections.set(limits.Connections)
	s.turns.SetPerUser(limits.RequestsPerUser)
	s.rates.SetPerSecond(limits.RequestsPerSecond)
	s.logs.SetLimits(limits.Logs)
	s.feeds.SetLimits(unlimited(limits.Logs.Total), limits.Logs.PerUser)
}

package auth

import "context"

type fromKey struct{}

// From puts the network that a request comes from into its context. Each network counts as one stranger. Requests to
// others that strangers cause through the gateway are shared fairly between networks. The network is only asked for by
// such a request, which a caller who is known does not cause.
func From(ctx context.Context, network func() string) context.Context {
	return context.WithValue(ctx, fromKey{}, network)
}

// Stranger is the name under which a caller that is not identified yet takes turns in a queue.
func Stranger(ctx context.Context) string {
	if network, ok := ctx.Value(fromKey{}).(func() string); ok {
		return "from " + network()
	}
	return "from "
}

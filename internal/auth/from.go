package auth

import "context"

type fromKey struct{}

// From puts the network that a request comes from into its context. Each network counts as one stranger. Requests to
// others that strangers cause through the gateway are shared fairly between networks.
func From(ctx context.Context, network string) context.Context {
	return context.WithValue(ctx, fromKey{}, network)
}

// Stranger is the name under which a caller that is not identified yet takes turns in a queue.
func Stranger(ctx context.Context) string {
	network, _ := ctx.Value(fromKey{}).(string)
	return "from " + network
}

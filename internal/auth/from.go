package auth

import "context"

type fromKey struct{}

// From says where a request comes from: the network that is taken for one stranger. What strangers ask of others through the
// gateway is shared fairly between these.
func From(ctx context.Context, network string) context.Context {
	return context.WithValue(ctx, fromKey{}, network)
}

// Stranger is whose turn it is in a queue, of those who have not shown yet who they are.
func Stranger(ctx context.Context) string {
	network, _ := ctx.Value(fromKey{}).(string)
	return "from " + network
}

package auth

// Explanation says to operators why a request is permitted or not. It names roles and bindings, so callers must not see
// it.
type Explanation struct {
	By    []string // what permits it; where that is a part of what is asked for, it says which
	Hints []string // what else there is that concerns the identity
}

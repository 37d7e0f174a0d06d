package eventstream

import "github.com/kubecast/kubecast/internal/http/access"

// ObjectParsers are those of Kubernetes' objects. Only an external test can set it, since objects are a source of a
// package that imports this one: objects_test.go does.
var ObjectParsers func(*access.Access) Parsers

// Package objecttest gives tests of eventstream the objects of Kubernetes as sources. These are in a package that imports
// eventstream, so its own tests cannot import them.
package objecttest

import (
	"github.com/kubecast/kubecast/internal/http/access"
	"github.com/kubecast/kubecast/internal/http/eventstream"
	"github.com/kubecast/kubecast/internal/http/objectstream"
)

// Parsers are those of objects, and of nothing else.
func Parsers(reach *access.Access) eventstream.Parsers {
	return objectstream.New(objectstream.Options{Access: reach}).Parsers()
}

package http

import (
	"crypto/sha256"
	_ "embed" // for the document
	"encoding/hex"
	"net/http"

	"github.com/kubecast/kubecast/internal/http/reply"
)

//go:embed openapi.yaml
var openAPI []byte

var openAPITag = func() string {
	sum := sha256.Sum256(openAPI)
	return `"` + hex.EncodeToString(sum[:8]) + `"`
}()

// describe answers the gateway's own OpenAPI document. Every caller may read it, since it says nothing of any cluster.
func describe(w http.ResponseWriter, r *http.Request) error {
	w.Header().Set("Content-Type", "application/yaml")
	w.Header().Set("Cache-Control", "no-cache")
	if !reply.NotModified(w, r, openAPITag) {
		_, _ = w.Write(openAPI) // a client that has gone is no error
	}
	return nil
}

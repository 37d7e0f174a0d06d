package shards

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Only answers nobody but edges that expect the core's shard: whoever else takes a part for the whole misses objects, and nothing
// would show it. It gives no right: what follows decides as ever who may see what.
func (p Share) Only(next http.Handler) http.Handler {
	if !p.Shard.Is() {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		number, of, _ := strings.Cut(r.Header.Get(Header), "/")
		shard, lists := p.shardOf(r.Method, ofCluster(r.URL.Path))
		switch any := number == "*" && !(shard.Is() && lists); {
		case r.Header.Get(Header) == p.Shard.String(), any && of == fmt.Sprint(p.Shard.Of):
		case r.Header.Get(Header) == "":
			refuse(w, fmt.Sprintf("this gateway has shard %s of some kinds, and answers only edges of it", p.Shard))
			return
		default:
			refuse(w, fmt.Sprintf("this gateway has shard %s of some kinds, and was asked for shard %q", p.Shard, r.Header.Get(Header)))
			return
		}
		if shard.Is() {
			w.Header().Set(Header, shard.String())
		}
		next.ServeHTTP(w, r)
	})
}

// refuse answers 421: the request was sent to a server that cannot answer it (RFC 9110, section 15.5.20).
func refuse(w http.ResponseWriter, why string) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusMisdirectedRequest)
	_, _ = w.Write(status(http.StatusMisdirectedRequest, "Misdirected", why)) // the client has gone if that fails
}

// status is an answer of Kubernetes' API that is an error.
func status(code int, reason metav1.StatusReason, message string) []byte {
	body, err := json.Marshal(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: message,
	})
	if err != nil {
		return nil // plain fields
	}
	return body
}

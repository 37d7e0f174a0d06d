package rest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/auth"
	"github.com/kubecast/kubecast/internal/cluster"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/http/request"
)

// The media types by which the API server is asked for documents.
const (
	AsJSON         = "application/json"
	AsDiscovery    = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
	asOpenAPIv2    = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
	asOpenAPIv3    = "application/com.github.proto-openapi.spec.v3.v1.0+protobuf"
	openAPIv2      = "/openapi/v2"
	openAPIv3      = "/openapi/v3"
	openAPIv3Paths = openAPIv3 + "/"
)

// documentTarget is the document that a path names: the API server's version, discovery, or OpenAPI.
type documentTarget struct {
	cluster string // "" for the default one
	path    string // at the API server
	prefix  string // prefix of the gateway's path: /clusters/NAME, or ""
}

// ParseDocument reads the path of a document, with or without /clusters/NAME before it.
func ParseDocument(path string) (d documentTarget, ok bool) {
	d.path = strings.TrimSuffix(path, "/")
	if rest, named := strings.CutPrefix(d.path, "/clusters/"); named {
		d.cluster, d.path, _ = strings.Cut(rest, "/")
		d.path, d.prefix = "/"+d.path, "/clusters/"+d.cluster
	}
	if !strings.HasPrefix(d.path, "/") {
		return d, false
	}
	parts := strings.Split(d.path, "/")[1:]
	switch parts[0] {
	case "version":
		return d, len(parts) == 1
	case "api":
		return d, len(parts) <= 2
	case "apis":
		return d, len(parts) <= 3
	case "openapi":
		return d, d.path == openAPIv2 || d.path == openAPIv3 || strings.HasPrefix(d.path, openAPIv3Paths)
	}
	return d, false
}

// Document answers a document. The cluster's own rules for URLs that are not resources decide who may read it: by
// default, users that are signed in may read what the cluster can do (system:discovery), and everyone may read its
// version.
func (h *Handler) Document(w http.ResponseWriter, r *http.Request, id auth.Identity, d documentTarget) error {
	kinds, err := h.access.Cluster(d.cluster)
	if err != nil {
		return err
	}
	if err := h.access.CheckPath(r.Context(), kinds, id, d.path); err != nil {
		return err
	}
	accept := reply.Choose(r.Header, d.form)
	if accept == "" {
		return reply.NotAcceptable("this document can be answered as application/json, and OpenAPI as protobuf, too")
	}
	if err := d.check(r, kinds.Cluster()); err != nil {
		return err
	}
	document, err := kinds.Cluster().Document(r.Context(), d.path, accept)
	if err != nil {
		return err
	}
	body, tag := document.Body, document.Tag
	if prefix := request.Base(r) + d.prefix; d.path == openAPIv3 && prefix != "" {
		if body, err = relocate(body, prefix); err != nil {
			return err
		}
		tag += "-" + strings.Trim(strings.ReplaceAll(prefix, "/", "-"), "-")
	}
	header := w.Header()
	header.Set("Content-Type", document.ContentType)
	header.Set("Cache-Control", "no-cache, private")
	if hash := r.URL.Query().Get("hash"); hash != "" && hash == document.Hash {
		header.Set("Cache-Control", "private, max-age=31536000, immutable") // the address contains a hash of the content
	}
	header.Add("Vary", reply.DiffersBy)
	if reply.NotModified(w, r, `W/"`+tag+`"`) {
		return nil
	}
	out := h.newListWriter(w, r, id.QuotaOwner())
	out.bytes(body)
	return out.close()
}

// form returns the media type to ask for, if a media range includes it; "" if none fits.
func (d documentTarget) form(media string, params map[string]string) string {
	isJSON := media == AsJSON || media == "application/*" || media == "*/*"
	switch {
	case params["as"] != "":
		if isJSON && (d.path == "/api" || d.path == "/apis") && params["as"] == "APIGroupDiscoveryList" &&
			params["g"] == "apidiscovery.k8s.io" && params["v"] == "v2" {
			return AsDiscovery
		}
		return ""
	case isJSON:
		return AsJSON
	case media == asOpenAPIv2 && d.path == openAPIv2:
		return asOpenAPIv2
	case media == asOpenAPIv3 && strings.HasPrefix(d.path, openAPIv3Paths):
		return asOpenAPIv3
	}
	return ""
}

// check looks into the parent document whether this one exists. Otherwise each invented path would cost the API
// server a request, and a place in the memory of documents.
func (d documentTarget) check(r *http.Request, c *cluster.Cluster) error {
	parent, is := d.parent()
	if parent == "" {
		return nil
	}
	document, err := c.Document(r.Context(), parent, AsJSON)
	if err != nil {
		return err
	}
	if !is(gjson.ParseBytes(document.Body)) {
		return reply.NoResource()
	}
	return nil
}

// parent returns the document that must list this one, and how to find it there; "" if there is none.
func (d documentTarget) parent() (path string, is func(gjson.Result) bool) {
	parts := strings.Split(d.path, "/")[1:]
	switch {
	case parts[0] == "api" && len(parts) == 2:
		return "/api", func(versions gjson.Result) bool {
			return contains(versions.Get("versions"), func(v gjson.Result) bool { return v.Str == parts[1] })
		}
	case parts[0] == "apis" && len(parts) > 1:
		return "/apis", func(groups gjson.Result) bool {
			return contains(groups.Get("groups"), func(group gjson.Result) bool {
				return group.Get("name").Str == parts[1] && (len(parts) == 2 ||
					contains(group.Get("versions"), func(v gjson.Result) bool { return v.Get("version").Str == parts[2] }))
			})
		}
	case strings.HasPrefix(d.path, openAPIv3Paths):
		name := strings.TrimPrefix(d.path, openAPIv3Paths)
		return openAPIv3, func(index gjson.Result) bool {
			_, ok := index.Get("paths").Map()[name]
			return ok
		}
	}
	return "", nil
}

func contains(array gjson.Result, is func(gjson.Result) bool) (found bool) {
	array.ForEach(func(_, element gjson.Result) bool {
		found = is(element)
		return !found
	})
	return found
}

// relocate adds what stands before it, such as a cluster's prefix, to the addresses in an OpenAPI index.
func relocate(index []byte, prefix string) ([]byte, error) {
	var document struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := json.Unmarshal(index, &document); err != nil {
		return nil, fmt.Errorf("the index of OpenAPI documents: %w", err)
	}
	for name, entry := range document.Paths {
		entry.URL = prefix + entry.URL
		document.Paths[name] = entry
	}
	return json.Marshal(document)
}

package cluster

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
)

// ErrNoDocument means that the cluster answered, and does not have such a document, or not in the form that was asked
// for.
var ErrNoDocument = errors.New("the cluster has no such document")

// Document is a document in which an API server describes itself: its version, discovery or OpenAPI. It is shared,
// and never changes.
type Document struct {
	Body        []byte
	ContentType string
	// Tag names the content: documents with the same body and content type have the same tag, on every replica.
	Tag string
	// Hash is the API server's own name of the content, which appears in the addresses of an OpenAPI index; it may be
	// "".
	Hash string
}

const (
	// documentFresh is how long a document is served without asking the API server whether it is still current. So a
	// new kind appears in it a second after it was installed, and all clients together cost one request per second
	// and document, which is mostly answered with 304.
	documentFresh = time.Second
	// documentChanging is documentFresh while the definitions of kinds change: an API server serves
	// a new one within half a second, and clients that have just installed it look for it.
	documentChanging = 50 * time.Millisecond
	changingFor      = 3 * time.Second
	// documentWait is how long a caller waits for the API server if there is an older document.
	documentWait = time.Second
	// documentUnused is how long a document is kept after its last use.
	documentUnused = 15 * time.Minute
	// maxDocuments bounds all documents of a cluster together, in all forms, and maxDocument bounds one, in bytes.
	// Those of a real API server have about 10 MiB.
	maxDocuments = 64 << 20
	maxDocument  = 32 << 20
)

// documents remembers the documents of one cluster; the least recently used is dropped first.
type documents struct {
	http *http.Client
	read func(*Document) (*Document, error) // turns an answer into what is kept

	memory *budget.Memory
	mu     sync.Mutex
	kept   map[documentName]*keptDocument
}

func newDocuments(client *http.Client, read func(*Document) (*Document, error)) documents {
	return documents{http: client, read: read, memory: budget.NewMemory(maxDocuments), kept: map[documentName]*keptDocument{}}
}

type documentName struct{ path, accept string }

type keptDocument struct {
	document *Document
	etag     string    // the API server's
	checked  time.Time // when the API server was last asked
	charge   *budget.Entry
}

// Document reads a document. It takes it from memory if it was checked within documentFresh, if it is unchanged, or
// if the cluster does not answer. Callers must choose path and accept from few values, since each pair is remembered.
// An error wraps ErrNoDocument or ErrUnavailable, or is the context's.
func (c *Cluster) Document(ctx context.Context, path, accept string) (*Document, error) {
	name := documentName{path, accept}
	kept := c.documents.find(name)
	if kept.document != nil && time.Since(kept.checked) < c.freshFor() {
		return kept.document, nil
	}
	waiting := ctx
	if kept.document != nil {
		shorter, cancel := context.WithTimeout(ctx, documentWait)
		defer cancel()
		waiting = shorter
	}
	answer, err := c.once(waiting, "document "+path+" "+accept, func(ctx context.Context) (any, error) {
		return c.readDocument(ctx, name, kept)
	})
	switch {
	case err == nil:
		return answer.(*Document), nil
	case kept.document == nil || ctx.Err() != nil || errors.Is(err, ErrNoDocument):
		return nil, err
	}
	return kept.document, nil // just as objects are served from the cache while the cluster is away
}

// freshFor is how long a document is served without asking.
func (c *Cluster) freshFor() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.defined.IsZero() && time.Since(c.defined) < changingFor {
		return documentChanging
	}
	return documentFresh
}

// readDocument asks the API server for a document, or, if one is kept, whether that is still current.
func (c *Cluster) readDocument(ctx context.Context, name documentName, kept keptDocument) (*Document, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.client.Get().AbsPath(name.path).URL().String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", name.accept)
	if kept.etag != "" {
		request.Header.Set("If-None-Match", kept.etag)
	}
	unavailable := func(err error) error {
		c.documents.failed(name)
		return fmt.Errorf("%w: %s of cluster %s: %w", ErrUnavailable, name.path, c.name, err)
	}
	response, err := c.documents.http.Do(request)
	if err != nil {
		return nil, unavailable(err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotModified:
		c.documents.keep(name, kept.document, kept.etag)
		return kept.document, nil
	case http.StatusNotFound, http.StatusNotAcceptable:
		c.documents.drop(name)
		return nil, fmt.Errorf("%w: %s: %s", ErrNoDocument, name.path, response.Status)
	default:
		return nil, unavailable(errors.New(response.Status))
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, maxDocument+1))
	switch {
	case err != nil:
		return nil, unavailable(err)
	case len(body) > maxDocument:
		return nil, unavailable(fmt.Errorf("it is larger than %d bytes", maxDocument))
	}
	etag := response.Header.Get("Etag")
	document, err := c.documents.read(&Document{Body: body, ContentType: contentType(response.Header), Hash: unquote(etag)})
	if err != nil {
		return nil, unavailable(err)
	}
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%s\n", document.ContentType) // a hash never fails
	sum.Write(document.Body)
	document.Tag = hex.EncodeToString(sum.Sum(nil)[:12])
	c.documents.keep(name, document, etag)
	return document, nil
}

// contentType is the content type of an answer. API servers label the index of their OpenAPI documents as plain text;
// it is JSON.
func contentType(h http.Header) string {
	if text := h.Get("Content-Type"); text != "" && !strings.HasPrefix(text, "text/plain") {
		return text
	}
	return "application/json"
}

func unquote(etag string) string {
	if len(etag) > 2 && etag[0] == '"' && etag[len(etag)-1] == '"' {
		return etag[1 : len(etag)-1]
	}
	return ""
}

func (d *documents) find(name documentName) keptDocument {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.kept[name]
	if kept == nil {
		return keptDocument{}
	}
	kept.charge.Use()
	return *kept
}

// failed puts off the next request, so that not every client waits for a cluster that is away.
func (d *documents) failed(name documentName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if kept := d.kept[name]; kept != nil {
		kept.checked = time.Now()
	}
}

func (d *documents) keep(name documentName, document *Document, etag string) {
	kept := &keptDocument{document: document, etag: etag, checked: time.Now()}
	kept.charge = d.memory.Enter(everybody, documentUnused, func() { d.remove(name, kept) })
	d.put(name, kept)
	kept.charge.Set(int64(len(document.Body)))
}

// everybody is charged with documents: they are the same for all users.
const everybody = ""

func (d *documents) drop(name documentName) { d.put(name, nil) }

// put makes a document the one that is kept; nil for none.
func (d *documents) put(name documentName, kept *keptDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if old := d.kept[name]; old != nil {
		old.charge.Release()
		delete(d.kept, name)
	}
	if kept != nil {
		d.kept[name] = kept
	}
}

func (d *documents) remove(name documentName, gone *keptDocument) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.kept[name] == gone {
		delete(d.kept, name)
	}
}

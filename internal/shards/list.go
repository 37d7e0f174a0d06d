package shards

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tidwall/gjson"

	"github.com/kubecast/kubecast/internal/cores"
)

// evenWithin is how long a list waits for the shard that is furthest behind.
const evenWithin = 20 * time.Second

// part is one shard's list.
type part struct {
	version uint64
	items   map[string]string // the JSON of objects, by namespace and name
}

// text is the body of one shard's list.
type text struct {
	json string
	err  error
}

func (t *text) read(body io.Reader) {
	var read strings.Builder // whose text is no copy
	_, t.err = io.Copy(&read, body)
	t.json = read.String()
}

// list makes one list of the shards'. Each is of a version of its own: those that are behind the newest one are brought there by what
// happened until then, as a watch tells it. So the list is what all objects were at one version.
//
// It has no pages, whatever limit is asked for. Only a list of one object is none: it asks for the newest version.
func (t *merging) list(r *http.Request, query url.Values, answers []*http.Response, texts []text) (*http.Response, error) {
	if query.Get("continue") != "" {
		return unavailable(r, "lists of several shards have no pages"), nil
	}
	parts := make([]*part, len(answers))
	newest := uint64(0)
	for k, list := range texts {
		if list.err != nil {
			return nil, fmt.Errorf("shard %s: %w", t.shard(k), list.err)
		}
		var err error
		if parts[k], err = read(list.json, isQuestion(query)); err != nil {
			return unavailable(r, fmt.Sprintf("shard %s: %v", t.shard(k), err)), nil
		}
		newest = max(newest, parts[k].version)
	}
	if !isQuestion(query) {
		ctx, cancel := context.WithTimeout(r.Context(), evenWithin)
		defer cancel()
		for k, p := range parts {
			if err := t.bring(r.WithContext(ctx), query, answers[k].Header.Get(cores.HistoryHeader), k, p, newest); err != nil {
				return unavailable(r, fmt.Sprintf("shard %s is not known at version %d: %v", t.shard(k), newest, err)), nil
			}
		}
	}
	body, err := write(gjson.Parse(texts[0].json), parts, newest)
	if err != nil {
		return unavailable(r, err.Error()), nil
	}
	return answer(r, answers[0], io.NopCloser(&body), body.size()), nil
}

// isQuestion reports whether a list is asked for because of its version.
func isQuestion(query url.Values) bool {
	return query.Get("limit") == "1" && query.Get("continue") == ""
}

// read reads a shard's list. It must be whole, if it is more than a question.
func read(body string, question bool) (*part, error) {
	if !gjson.Valid(body) {
		return nil, errors.New("its list is no JSON")
	}
	list := gjson.Parse(body)
	p := &part{items: map[string]string{}}
	var err error
	if p.version, err = strconv.ParseUint(list.Get("metadata.resourceVersion").Str, 10, 64); err != nil {
		return nil, fmt.Errorf("the version of its list: %w", err)
	}
	if !question && list.Get("metadata.continue").Str != "" {
		return nil, errors.New("its list is not whole")
	}
	list.Get("items").ForEach(func(_, item gjson.Result) bool {
		p.items[key(item)] = item.Raw
		return true
	})
	return p, nil
}

// key is the namespace and the name of an object.
func key(object gjson.Result) string {
	return object.Get("metadata.namespace").Str + "/" + object.Get("metadata.name").Str
}

// bring brings a shard's list to a version.
func (t *merging) bring(r *http.Request, query url.Values, history string, k int, p *part, to uint64) error {
	if p.version == to {
		return nil
	}
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	r = r.WithContext(ctx)
	asked := url.Values{
		"watch": {"true"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {strconv.FormatUint(p.version, 10)},
		"timeoutSeconds": {strconv.Itoa(int(evenWithin / time.Second))},
	}
	for _, name := range []string{"labelSelector", "fieldSelector"} {
		if query.Has(name) {
			asked[name] = query[name]
		}
	}
	watch := r.Clone(r.Context())
	watch.URL.RawQuery = asked.Encode()
	watch.Header.Set("Accept", strings.ReplaceAll(watch.Header.Get("Accept"), "as=PartialObjectMetadataList", "as=PartialObjectMetadata"))
	watch.Header.Set(cores.RelistHeader, cores.RelistEnds)
	if history != "" {
		watch.Header.Set(cores.HistoryHeader, history)
	}
	answered, err := t.ask(watch, k)
	if err != nil {
		return err
	}
	defer answered.Body.Close()
	if answered.StatusCode != http.StatusOK || answered.Header.Get(Header) != t.shard(k).String() || answered.Header.Get(cores.HistoryHeader) != history {
		return fmt.Errorf("a watch from version %d is answered with %d, of shard %q and history %q", p.version, answered.StatusCode, answered.Header.Get(Header), answered.Header.Get(cores.HistoryHeader))
	}
	reach, done := make(chan uint64, 1), make(chan struct{})
	var asking sync.WaitGroup
	asking.Go(func() { t.reach(ctx, answered.Request, reach, done) })
	defer asking.Wait() // behind what ends it
	defer cancel()
	defer close(done)
	reach <- to
	for dec := newDecoder(answered.Body); ; {
		e, err := dec.next()
		switch {
		case err != nil:
			return err
		case e.kind == "ERROR":
			return fmt.Errorf("its watch ends with %s", e.raw)
		case e.kind == "BOOKMARK" && e.version >= to, e.version > to:
			return nil
		}
		switch at := gjson.GetBytes(e.raw, "object"); e.kind {
		case "ADDED", "MODIFIED":
			p.items[key(at)] = at.Raw
		case "DELETED":
			delete(p.items, key(at))
		}
	}
}

// write writes the parts as one list, in the order of an API server, which is that of the keys in etcd.
func write(form gjson.Result, parts []*part, version uint64) (pieces, error) {
	var keys []string
	of := map[string]string{}
	for _, p := range parts {
		for key, raw := range p.items {
			if _, twice := of[key]; twice {
				return nil, fmt.Errorf("two shards have %s at version %d", key, version)
			}
			keys, of[key] = append(keys, key), raw
		}
	}
	slices.Sort(keys)
	more := ""
	if form.Get("metadata.continue").Exists() { // as lists of custom resources are written
		more = `,"continue":""`
	}
	out := append(make(pieces, 0, 2*len(keys)+2),
		fmt.Sprintf(`{"kind":%s,"apiVersion":%s,"metadata":{"resourceVersion":"%d"%s},"items":[`, form.Get("kind").Raw, form.Get("apiVersion").Raw, version, more))
	for i, key := range keys {
		if i > 0 {
			out = append(out, ",")
		}
		out = append(out, of[key])
	}
	return append(out, "]}\n"), nil
}

// pieces are a text that is read, without a copy of it as a whole.
type pieces []string

func (p pieces) size() (n int64) {
	for _, piece := range p {
		n += int64(len(piece))
	}
	return n
}

// Read implements io.Reader.
func (p *pieces) Read(to []byte) (n int, err error) {
	for n < len(to) && len(*p) > 0 {
		copied := copy(to[n:], (*p)[0])
		n += copied
		if (*p)[0] = (*p)[0][copied:]; (*p)[0] == "" {
			*p = (*p)[1:]
		}
	}
	if n == 0 && len(to) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

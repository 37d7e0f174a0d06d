package shards

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubecast/kubecast/internal/cores"
)

// Merge chooses among the cores of shards, and puts together what they answer. It may be used concurrently.
type Merge struct {
	named  *url.URL // to which requests are addressed
	shards []group
	any    *cores.Cores // of whichever shard
	held   int64        // see heldBytes
}

// group are the cores of one shard.
type group struct {
	base  *url.URL // to which its requests are addressed
	cores *cores.Cores
}

// NewMerge returns the cores at some addresses, of as many shards: the address K has shard K of N, the address N+K too, as another
// core of the same one.
func NewMerge(addresses []string, n int) (*Merge, error) {
	if n < 2 || len(addresses) == 0 || len(addresses)%n != 0 {
		return nil, fmt.Errorf("%d cores cannot be those of %d shards, which have as many each", len(addresses), n)
	}
	m := &Merge{held: heldBytes}
	var err error
	if m.any, err = cores.New(addresses); err != nil {
		return nil, err
	}
	for k := range n {
		var of []string
		for i := k; i < len(addresses); i += n {
			of = append(of, addresses[i])
		}
		g := group{}
		if g.base, err = url.Parse(strings.TrimSuffix(of[0], "/")); err != nil {
			return nil, err
		}
		if g.cores, err = cores.New(of); err != nil {
			return nil, err
		}
		m.shards = append(m.shards, g)
	}
	m.named = m.shards[0].base
	return m, nil
}

// Wrap returns a transport that answers as a server of all objects what is addressed to the first core.
func (m *Merge) Wrap(base http.RoundTripper) http.RoundTripper {
	t := &merging{merge: m, base: base, any: m.any.Wrap(base)}
	for _, g := range m.shards {
		t.shards = append(t.shards, g.cores.Wrap(base))
	}
	return t
}

type merging struct {
	merge  *Merge
	base   http.RoundTripper
	any    http.RoundTripper
	shards []http.RoundTripper
}

// WrappedRoundTripper lets others find the transport below, as to close its connections.
func (t *merging) WrappedRoundTripper() http.RoundTripper { return t.base }

// RoundTrip implements http.RoundTripper.
func (t *merging) RoundTrip(r *http.Request) (*http.Response, error) {
	path := strings.TrimPrefix(r.URL.Path, t.merge.named.Path)
	switch _, resource, rest := kindOf(r.Method, path); {
	case resource == "":
	case rest == 0:
		return t.all(r)
	default:
		return t.first(r)
	}
	anywhere := r.Clone(r.Context())
	anywhere.Header.Set(Header, fmt.Sprintf("*/%d", len(t.shards)))
	return t.any.RoundTrip(anywhere)
}

// ask sends a request to a shard.
func (t *merging) ask(r *http.Request, k int) (*http.Response, error) {
	to, named := t.merge.shards[k].base, t.merge.named
	of := r.Clone(r.Context())
	of.URL.Scheme, of.URL.Host, of.Host = to.Scheme, to.Host, ""
	of.URL.Path = to.Path + strings.TrimPrefix(r.URL.Path, named.Path)
	if r.URL.RawPath != "" {
		of.URL.RawPath = to.Path + strings.TrimPrefix(r.URL.RawPath, named.Path)
	}
	of.Header.Set(Header, t.shard(k).String())
	return t.shards[k].RoundTrip(of)
}

func (t *merging) shard(k int) Shard { return Shard{k + 1, len(t.shards)} }

// first answers for one object: whichever shard has it. It is nowhere only if all shards say so, or one that has all of the kind.
func (t *merging) first(r *http.Request) (*http.Response, error) {
	var nowhere, refusal *http.Response
	var failure error
	for k := range t.shards {
		response, err := t.ask(r, k)
		switch {
		case err != nil:
			failure = err
		case response.StatusCode == http.StatusNotFound && response.Header.Get(Header) != "":
			closeBody(nowhere)
			nowhere = response
		case isFinal(response.StatusCode):
			closeBody(nowhere)
			closeBody(refusal)
			return response, nil
		default:
			closeBody(refusal)
			refusal = response
		}
	}
	if failure == nil && refusal == nil {
		return nowhere, nil
	}
	closeBody(nowhere)
	switch {
	case refusal != nil:
		return refusal, nil
	case nowhere != nil:
		return unavailable(r, failure.Error()), nil
	}
	return nil, failure
}

// all answers a list or a watch. Whether the kind is divided is known by the answer of a shard; if it is not, that is the answer. If it
// is, all others are asked at once, and lists are read at once: a core cuts whoever takes nothing of its list for long.
func (t *merging) all(r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	asked, query := r.WithContext(ctx), r.URL.Query()
	if query.Has("limit") && !isQuestion(query) { // see list
		asked = r.Clone(ctx)
		query.Del("limit")
		asked.URL.RawQuery = query.Encode()
	}
	watches := isTrue(query.Get("watch"))
	answers, errs, texts := make([]*http.Response, len(t.shards)), make([]error, len(t.shards)), make([]text, len(t.shards))
	var reading sync.WaitGroup
	giveUp := func() {
		cancel()
		giveUpOthers(answers)
		reading.Wait()
	}
	alone := func(k int) *http.Response { // is the answer, and the others are not
		answer := answers[k]
		answers[k] = nil
		giveUpOthers(answers)
		reading.Wait()
		answer.Body = &ending{answer.Body, cancel}
		return answer
	}
	var failure error // of the shards that did not answer at all
	for next, divided := 0, false; next < len(t.shards); {
		first := next
		if next++; divided {
			next = len(t.shards)
		}
		var asking sync.WaitGroup
		for k := first; k < next; k++ {
			asking.Go(func() {
				answer, err := t.ask(asked, k)
				if answers[k], errs[k] = answer, err; err == nil && !watches && t.isPart(answer, k) {
					reading.Go(func() { texts[k].read(answer.Body) })
				}
			})
		}
		asking.Wait()
		for k := first; k < next; k++ {
			answer := answers[k]
			if errs[k] != nil {
				failure = errors.Join(failure, fmt.Errorf("shard %s: %w", t.shard(k), errs[k]))
				continue // a kind that is not divided another one answers as well
			}
			switch of := answer.Header.Get(Header); {
			case t.isPart(answer, k):
				divided = true
			case of == "" && answer.StatusCode == http.StatusOK, answer.StatusCode != http.StatusOK && isFinal(answer.StatusCode):
				return alone(k), nil
			case answer.StatusCode != http.StatusOK: // another one may have the kind whole
				failure = errors.Join(failure, &refusal{answer.StatusCode, t.shard(k)})
			default:
				giveUp()
				return unavailable(r, fmt.Sprintf("a core answers as shard %s where edge.core has one of shard %s", of, t.shard(k))), nil
			}
		}
	}
	if failure != nil {
		var refused *refusal
		if errors.As(failure, &refused) {
			for k, answer := range answers {
				if answer != nil && answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusMisdirectedRequest { // says most: 429 or 503, and when to come again
					return alone(k), nil
				}
			}
		}
		answered := slices.ContainsFunc(answers, func(a *http.Response) bool { return a != nil })
		giveUp()
		if answered { // or the whole cluster would be taken for away (cluster.breaker), also what another core answers alone
			return unavailable(r, failure.Error()), nil
		}
		return nil, failure
	}
	history := answers[0].Header.Get(cores.HistoryHeader)
	for _, answer := range answers {
		if answer.Header.Get(cores.HistoryHeader) != history {
			giveUp()
			return unavailable(r, "the shards tell of different histories: a core was started before etcd was restored, and another one since"), nil
		}
	}
	if watches {
		return t.watch(asked, query, answers, cancel)
	}
	defer giveUp()
	reading.Wait()
	return t.list(asked, query, answers, texts)
}

// isPart reports whether an answer has the objects of a shard.
func (t *merging) isPart(answer *http.Response, k int) bool {
	return answer.StatusCode == http.StatusOK && answer.Header.Get(Header) == t.shard(k).String()
}

// refusal is a failure that is an answer.
type refusal struct {
	code  int
	shard Shard
}

func (e *refusal) Error() string { return fmt.Sprintf("shard %s answered %d", e.shard, e.code) }

// isFinal reports whether no other shard can answer better. A core that is of another shard than it should be (421) still says nothing of
// what others have whole.
func isFinal(code int) bool {
	return code != http.StatusTooManyRequests && code != http.StatusBadGateway && code != http.StatusServiceUnavailable && code != http.StatusMisdirectedRequest
}

func isTrue(text string) bool { return text != "" && text != "0" && !strings.EqualFold(text, "false") }

// answer is one of the shards' with another body.
func answer(r *http.Request, like *http.Response, body io.ReadCloser, length int64) *http.Response {
	header := like.Header.Clone()
	for _, name := range []string{"Content-Length", "ETag", Header} {
		header.Del(name)
	}
	return &http.Response{
		Status: "200 OK", StatusCode: http.StatusOK, Proto: like.Proto, ProtoMajor: like.ProtoMajor, ProtoMinor: like.ProtoMinor,
		Header: header, Body: body, ContentLength: length, Request: r,
	}
}

// unavailable says that the shards do not fit together now.
func unavailable(r *http.Request, why string) *http.Response {
	body := status(http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable, why)
	return &http.Response{
		Status: "503 Service Unavailable", StatusCode: http.StatusServiceUnavailable, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r,
	}
}

// ending ends what was asked for besides when it is closed.
type ending struct {
	io.ReadCloser
	end context.CancelFunc
}

func (e *ending) Close() error {
	err := e.ReadCloser.Close()
	e.end()
	return err
}

func giveUpOthers(answers []*http.Response) {
	for _, answer := range answers {
		closeBody(answer)
	}
}

func closeBody(response *http.Response) {
	if response != nil {
		_ = response.Body.Close()
	}
}

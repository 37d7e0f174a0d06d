package apitest

import (
	"context"
	"io"
	"net/http"
	"runtime"
	"sync"
)

// RoundTrip implements http.RoundTripper: the answer comes from ServeHTTP, without a network between.
func (a *API) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(r.Context())
	reader, writer := io.Pipe()
	answer := &answer{header: http.Header{}, body: writer, begun: make(chan struct{})}
	unhook := context.AfterFunc(ctx, func() { reader.CloseWithError(context.Canceled) })
	go func() {
		defer func() {
			if answer.err != nil {
				answer.WriteHeader(0)
			}
			answer.WriteHeader(http.StatusOK)
		}()
		defer func() {
			switch p := recover().(type) {
			case nil:
				writer.Close()
			case runtime.Error:
				panic(p)
			case error:
				answer.err = p
				writer.CloseWithError(io.ErrUnexpectedEOF)
			default:
				panic(p)
			}
		}()
		a.ServeHTTP(answer, r.WithContext(ctx))
	}()
	<-answer.begun
	if answer.code == 0 {
		cancel()
		return nil, answer.err
	}
	header := answer.header.Clone()
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	return &http.Response{
		Status:        http.StatusText(answer.code),
		StatusCode:    answer.code,
		Proto:         "HTTP/1.1",
		ProtoMajor:    1,
		ProtoMinor:    1,
		Header:        header,
		ContentLength: -1,
		Body:          &body{reader, func() { unhook(); cancel() }},
		Request:       r,
	}, nil
}

// answer is the ResponseWriter of RoundTrip.
type answer struct {
	header http.Header
	body   io.Writer
	code   int // 0: there is none
	err    error
	once   sync.Once
	begun  chan struct{} // closed once the code is known
}

func (a *answer) Header() http.Header { return a.header }

func (a *answer) WriteHeader(code int) {
	a.once.Do(func() {
		a.code = code
		close(a.begun)
	})
}

func (a *answer) Write(p []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if len(p) == 0 {
		return 0, nil // a pipe would wait for a reader of nothing
	}
	return a.body.Write(p)
}

// body lets the handler know when the client has closed the answer.
type body struct {
	*io.PipeReader
	closed func()
}

func (b *body) Close() error {
	b.closed()
	return b.PipeReader.Close()
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
	"unicode"

	"github.com/r3labs/sse/v2"
	"gopkg.in/cenkalti/backoff.v1"
)

// maxEvent bounds one event, in bytes: etcd refuses objects of more than 1.5 MiB, but JSON can be longer than the
// form in which they are stored.
const maxEvent = 8 << 20

// watch prints a stream, and resumes it until it is interrupted, or the server refuses it for good.
func watch(ctx context.Context, args []string, out io.Writer) error {
	flags := newFlags("watch", "PATH prints an event stream of a gateway, such as /api/v1/pods, until it is interrupted", out)
	server := flags.String("server", "http://127.0.0.1:8080", "`URL` of the gateway")
	token := flags.String("token", os.Getenv("KUBECAST_TOKEN"), "bearer `token` (default $KUBECAST_TOKEN)")
	tokenFile := flags.String("token-file", "", "`file` with the bearer token, read again for each connection")
	ca := flags.String("ca", "", "`file` with the certificates (PEM) of those who may vouch for the gateway's, in place of the system's")
	output := flags.String("o", "line", "`form` of the output: line or json")
	if err := flags.parse(args, 1); err != nil {
		return err
	}
	address, err := streamURL(*server, flags.Arg(0))
	if err != nil {
		return err
	}
	var print func(*sse.Event) error
	switch *output {
	case "line":
		print = func(e *sse.Event) error { return printLine(out, e) }
	case "json":
		print = func(e *sse.Event) error { return printJSON(out, e) }
	default:
		return fmt.Errorf("watch: -o %q is neither line nor json", *output)
	}
	connection, err := trusting(*ca)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	bearer := func() (string, error) { return bearerOf(*token, *tokenFile) }
	if waits := waitsURL(address, flags.Arg(0)); waits != "" && *output == "line" {
		var asking sync.WaitGroup
		defer asking.Wait()
		defer stop()
		one := &oneAtATime{to: out}
		out = one
		asking.Go(func() {
			printWaits(ctx, connection, waits, bearer, func(line string) error { return printRow(one, &sse.Event{Event: []byte("waits")}, line) },
				func(problem string) { fmt.Fprintln(os.Stderr, "gateway watch:", printable(problem)) })
		})
	}

	w := &watcher{
		client: sse.NewClient(address, sse.ClientMaxBufferSize(maxEvent)),
		print:  print,
		stop:   stop,
		retry:  2 * time.Second,
	}
	// The library makes one attempt for each connection, so that the token is fresh, and the server's retry counts.
	w.client.ReconnectStrategy = &backoff.StopBackOff{}
	w.client.ResponseValidator = refusal
	w.client.Connection = connection
	for failures := 0; ; failures++ {
		token, err := bearer()
		if err != nil {
			return err
		}
		if token != "" {
			w.client.Headers["Authorization"] = "Bearer " + token
		}
		before := w.events
		w.client.LastEventID.Store(w.position) // the library's own may be of an event that was cut off
		err = w.client.SubscribeRawWithContext(ctx, w.event)
		var refused *refusedError
		switch {
		case ctx.Err() != nil:
			return w.failed
		case errors.As(err, &refused):
			return err
		case err != nil:
			fmt.Fprintln(os.Stderr, "gateway watch: connection lost:", err)
		}
		if w.events > before {
			failures = 0
		}
		wait := w.retry << min(failures, 4) // without jitter: the server has spread its retry
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait + rand.N(wait/4+1)):
		}
	}
}

// bearerOf is the bearer token: what a file has now if one is named.
func bearerOf(token, file string) (string, error) {
	if file == "" {
		return token, nil
	}
	text, err := os.ReadFile(file)
	return strings.TrimSpace(string(text)), err
}

// oneAtATime is an output to which several write whole lines.
type oneAtATime struct {
	mu sync.Mutex
	to io.Writer
}

func (o *oneAtATime) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.to.Write(p)
}

// trusting makes a client of HTTP that trusts the certificates of a file; the usual client if there is none.
func trusting(file string) (*http.Client, error) {
	if file == "" {
		return &http.Client{}, nil
	}
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("-ca: %w", err)
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(text) {
		return nil, fmt.Errorf("-ca %s: there is no certificate in it", file)
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.TLSClientConfig = &tls.Config{RootCAs: trusted}
	return &http.Client{Transport: transport}, nil
}

type watcher struct {
	client   *sse.Client
	print    func(*sse.Event) error
	stop     func()
	retry    time.Duration
	events   int
	position []byte // the id of the last complete event
	failed   error  // the error of printing
}

// event prints one event. The library calls it in order.
func (w *watcher) event(e *sse.Event) {
	if ms, err := strconv.ParseUint(string(e.Retry), 10, 32); err == nil {
		w.retry = time.Duration(ms) * time.Millisecond
	}
	// When a connection breaks within an event, the library passes on the part that came. Each event of the gateway
	// carries JSON, and a part of that is not valid JSON.
	if len(e.Event) == 0 || !json.Valid(e.Data) || w.failed != nil {
		return
	}
	w.events++
	w.position = e.ID
	if w.failed = w.print(e); w.failed != nil {
		w.stop() // the output is closed
	}
}

// refusedError is an answer that would be the same for a repeated request.
type refusedError struct{ message string }

func (e *refusedError) Error() string { return e.message }

// refusal turns an answer that is not a stream into an error with the server's message.
func refusal(_ *sse.Client, response *http.Response) error {
	if response.StatusCode == http.StatusOK && strings.HasPrefix(response.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	defer response.Body.Close()
	body, _ := io.ReadAll(io.LimitReader(response.Body, 64<<10)) // as much as could be read has to do
	var said struct{ Message, Detail string }
	_ = json.Unmarshal(body, &said) // not JSON: there is no message
	message := response.Status
	if text := said.Message + said.Detail; text != "" {
		message += ": " + text
	}
	if response.StatusCode >= 500 || response.StatusCode == http.StatusTooManyRequests {
		return errors.New(message)
	}
	return &refusedError{message}
}

// streamURL joins the server's address and the path of a stream.
func streamURL(server, path string) (string, error) {
	base, err := url.Parse(server)
	if err != nil || base.Host == "" || base.Scheme != "http" && base.Scheme != "https" {
		return "", fmt.Errorf("watch: --server %q is not the URL of a gateway, such as https://kubecast.example.org", server)
	}
	if !strings.HasPrefix(path, "/") {
		return "", fmt.Errorf("watch: %q is not a path, such as /api/v1/pods", path)
	}
	return strings.TrimSuffix(base.String(), "/") + path, nil
}

// printLine prints the parts of an event that a person wants to see.
func printLine(out io.Writer, e *sse.Event) error {
	var data struct {
		Kind     string
		Metadata struct{ Namespace, Name, ResourceVersion string }
		Status   struct{ Phase string }
		// Of a transition in a history.
		Resource, Namespace, Name, From, To, Reason string
		Cause                                       struct{ Text string }
		// Of a line of a log, or of what becomes of a container.
		Pod, Container, Text string
		Restart              int
		ExitCode             *int
	}
	if name := e.Event[bytes.LastIndexByte(e.Event, '.')+1:]; string(name) == "queue" {
		return printQueues(out, e)
	}
	rest := string(e.Data)
	switch err := json.Unmarshal(e.Data, &data); {
	case err != nil:
	case data.To != "":
		rest = strings.TrimSpace(fmt.Sprintf("%s %s/%s %s → %s %s", data.Resource, data.Namespace, data.Name, cmp.Or(data.From, "·"), data.To, cmp.Or(data.Cause.Text, data.Reason)))
	case data.Pod != "" && bytes.HasSuffix(e.Event, []byte("line")):
		rest = data.Pod + "/" + data.Container + " " + data.Text
	case data.Pod != "":
		rest = fmt.Sprintf("%s/%s %s", data.Pod, data.Container, data.Reason)
		if data.Restart > 0 {
			rest += fmt.Sprintf(" restart %d", data.Restart)
		}
		if data.ExitCode != nil {
			rest += fmt.Sprintf(" exit code %d", *data.ExitCode)
		}
	case data.Metadata.Name != "":
		name := data.Metadata.Name
		if data.Metadata.Namespace != "" {
			name = data.Metadata.Namespace + "/" + name
		}
		rest = strings.TrimSpace(fmt.Sprintf("%s %s %s", data.Kind, name, data.Status.Phase))
	}
	return printRow(out, e, rest)
}

// printRow prints what is told of an event in a line.
func printRow(out io.Writer, e *sse.Event, text string) error {
	_, err := fmt.Fprintf(out, "%s  %-9s  %s\n", time.Now().Format(time.TimeOnly), printable(string(e.Event)), printable(text))
	return err
}

// printable leaves out characters that control a terminal, since the text of an object may come from a stranger.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsPrint(r):
			return r
		}
		return -1
	}, text)
}

// printJSON prints an event as one line of JSON.
func printJSON(out io.Writer, e *sse.Event) error {
	line, err := json.Marshal(struct {
		Event string          `json:"event"`
		ID    string          `json:"id,omitempty"`
		Data  json.RawMessage `json:"data"`
	}{string(e.Event), string(e.ID), e.Data})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "%s\n", line)
	return err
}

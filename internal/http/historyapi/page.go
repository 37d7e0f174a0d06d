package historyapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/kubecast/kubecast/internal/budget"
	"github.com/kubecast/kubecast/internal/http/coding"
	"github.com/kubecast/kubecast/internal/http/conn"
	"github.com/kubecast/kubecast/internal/http/reply"
	"github.com/kubecast/kubecast/internal/jobs/service"
	"github.com/kubecast/kubecast/internal/jobs/store"
)

// pageBytes bounds a page. A page that has grown so large ends before its limit, with a token.
const pageBytes = 4 << 20

// page is an answer that is being made.
type page struct {
	from  service.Reader
	task  *budget.Task
	body  bytes.Buffer
	items int
	// seeks says that its rows are searched for: if a further reading fails, the page has what was found before.
	seeks bool
}

func (p *page) isFull() bool { return p.body.Len() >= pageBytes }

// chunk is how many rows are read at once, since the rows of a page may be large.
const chunk = 100

// fill makes a page of up to so many rows. Read gives what follows the last row that was told, at
// most so many; told is a row as it is told; goOn is the token with which a page goes on behind the
// last row that was, or where a search for rows ended.
func fill[T any](p *page, limit int, read func(most int) ([]T, error), told func(T) any, goOn func(at *store.Unfinished) string) error {
	for {
		n := min(limit-p.items, chunk)
		rows, err := read(n + 1)
		var unfinished *store.Unfinished
		switch {
		case err == nil, errors.As(err, &unfinished):
		case p.seeks && p.items > 0 && (errors.Is(err, store.ErrBusy) || errors.Is(err, service.ErrAway)):
			return p.end(goOn(nil)) // if it lasts, the next page says so
		default:
			return err
		}
		for i, row := range rows {
			if i == n || p.isFull() {
				if p.items < limit && !p.isFull() {
					break // the next chunk begins here
				}
				return p.end(goOn(nil))
			}
			if err := p.add(told(row)); err != nil {
				return err
			}
		}
		if unfinished != nil {
			return p.end(goOn(unfinished))
		}
		if len(rows) <= n {
			return p.end("")
		}
	}
}

// add adds an item.
func (p *page) add(item any) error {
	if p.items == 0 {
		p.body.WriteString(`{"items":[`)
	} else {
		p.body.WriteByte(',')
	}
	text, err := json.Marshal(item)
	if err != nil {
		return err
	}
	p.body.Write(text)
	p.items++
	if !p.task.Step(8 * len(text)) {
		return p.task.Err()
	}
	return nil
}

// end ends the page. The token is "" on the last one.
func (p *page) end(token string) error {
	if p.items == 0 {
		p.body.WriteString(`{"items":[`)
	}
	p.body.WriteString(`],"continue":"` + token + `"}` + "\n")
	return nil
}

// piece is how many bytes a client has to take under one deadline.
const piece = 64 << 10

// worthCoding is the size, in bytes, from which a page is compressed.
const worthCoding = 1 << 10

// encode compresses the page. What it says is the caller's to see, and repeats nothing that they asked for by name.
func (p *page) encode(in *coding.Coding, quotaOwner string) error {
	var coded bytes.Buffer
	out, body := []byte(nil), coding.Body{QuotaOwner: quotaOwner}
	for p.body.Len() > 0 {
		part := p.body.Next(coding.PieceSize)
		if !p.task.Step(len(part)) {
			return p.task.Err()
		}
		out = in.Append(&body, out[:0], part)
		coded.Write(out)
	}
	coded.Write(in.End(&body, out[:0]))
	p.body = coded
	return nil
}

// send sends the page, of whatever type, in a coding; nil means none.
func (p *page) send(w http.ResponseWriter, r *http.Request, in *coding.Coding, quotaOwner string, patience time.Duration) error {
	header := w.Header()
	header.Set("Cache-Control", "no-store")
	header.Add("Vary", "Accept-Encoding")
	if in != nil && p.body.Len() >= worthCoding {
		if err := p.encode(in, quotaOwner); err != nil {
			return err
		}
		header.Set("Content-Encoding", in.Name)
	}
	p.task.Rest()
	header.Set("Content-Length", strconv.Itoa(p.body.Len()))
	to := conn.NewPatientWriter(w, r, patience)
	for p.body.Len() > 0 {
		if _, err := to.Write(p.body.Next(piece)); err != nil {
			return &reply.Error{Message: "the client did not take the answer", Cause: err}
		}
	}
	return nil
}

package rest

import (
	"bufio"
	"slices"
	"sync"

	"github.com/kubecast/kubecast/internal/http/coding"
)

// worthCoding is the size, in bytes, from which an answer is compressed: a smaller one fits into a packet as it is.
const worthCoding = 1 << 10

// codedBody encodes an answer, piece by piece, between the buffer of its listWriter and the client.
type codedBody struct {
	of     *listWriter
	coding *coding.Coding
	body   coding.Body
	out    *[]byte // scratch
	head   bool    // only the header is wanted
	begun  bool
	plain  bool // the answer was too small
}

var (
	codedBuffers = sync.Pool{New: func() any { return bufio.NewWriterSize(nil, coding.PieceSize) }}
	codedPieces  = sync.Pool{New: func() any { return new([]byte) }}
)

// encode lets an answer be encoded of which nothing was written yet.
func (l *listWriter) encode(chosen *coding.Coding, quotaOwner string, head bool) {
	l.w.Reset(nil)
	listBuffers.Put(l.w)
	l.coded = &codedBody{of: l, coding: chosen, body: coding.Body{QuotaOwner: quotaOwner}, out: codedPieces.Get().(*[]byte), head: head}
	l.w = codedBuffers.Get().(*bufio.Writer)
	l.w.Reset(l.coded)
}

// Write encodes and sends what was collected.
func (c *codedBody) Write(collected []byte) (int, error) {
	if c.plain {
		return c.of.to.Write(collected)
	}
	if !c.begun {
		c.begun = true
		c.of.header.Set("Content-Encoding", c.coding.Name)
		c.of.header.Del("Content-Length")
	}
	if c.head {
		return len(collected), nil
	}
	for piece := range slices.Chunk(collected, coding.PieceSize) {
		if task := c.of.task; task != nil && !task.Step(len(piece)) {
			return 0, task.Err()
		}
		*c.out = c.coding.Append(&c.body, (*c.out)[:0], piece)
		if err := c.send(); err != nil {
			return 0, err
		}
	}
	return len(collected), nil
}

// send sends what was encoded. Others have their turns while the client takes it.
func (c *codedBody) send() error {
	if c.of.task != nil {
		c.of.task.Rest()
	}
	_, err := c.of.to.Write(*c.out)
	return err
}

// close sends the rest of the answer.
func (c *codedBody) close(w *bufio.Writer) error {
	c.plain = !c.begun && w.Buffered() < worthCoding
	if err := w.Flush(); err != nil || c.plain || c.head {
		return err
	}
	*c.out = c.coding.End(&c.body, (*c.out)[:0])
	if len(*c.out) == 0 {
		return nil
	}
	return c.send()
}

// release gives the buffers back.
func (c *codedBody) release(w *bufio.Writer) {
	codedBuffers.Put(w)
	codedPieces.Put(c.out)
}

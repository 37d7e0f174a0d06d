package clients

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// large opens streams with an event of 1 MiB: with each library's defaults, and where these do not suffice with a
// raised buffer.
func (m *matrix) large(t *testing.T, facts map[string]*facts) func(*testing.T) {
	other := m.gateway.stage.newNamespace(t, "matrix-large")
	return func(t *testing.T) {
		if err := other.create(t.Context(), "large", megabyte()); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		for _, c := range m.clients {
			group.Go(func() {
				fact := "arrives"
				err := c.receives(m.gateway.url()+other.path(), false)
				for again := 0; err != nil && !strings.Contains(err.Error(), "token too long") && again < 5; again++ {
					t.Logf("%s: the large event, which is not its buffer's fault: %v", c.key, err)
					err = c.receives(m.gateway.url()+other.path(), false)
				}
				if err != nil {
					t.Logf("%s: the large event: %v", c.key, err)
					fact = "needs a larger buffer"
					err = c.receives(m.gateway.url()+other.path(), true)
				}
				if err != nil {
					fact = "does not arrive"
				}
				facts[c.key].large = fact // each client has its own goroutine
			})
		}
		group.Wait()
	}
}

// receives opens a stream, and waits for the large event or for the first failure.
func (c client) receives(url string, raised bool) error {
	result := make(chan error, 1)
	tell := func(err error) {
		select {
		case result <- err:
		default: // only the first counts
		}
	}
	id, err := c.driver.open(command{Client: c.key, URL: url, Raised: raised}, func(r report) {
		switch {
		case r.Type == "event" && len(r.Data) > len(megabyte()):
			tell(nil)
		case r.Type == "lost", r.Type == "ended", r.Type == "dead":
			tell(fmt.Errorf("%s: %s", r.Type, r.Message))
		}
	})
	if err != nil {
		return err
	}
	err = <-result
	if closeErr := c.driver.close(id); err == nil {
		err = closeErr
	}
	return err
}

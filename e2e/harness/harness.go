// Package harness is what tests of whole gateways have in common, here and in clients: addresses that last, and what a
// program's log says when a test ends.
package harness

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
)

// Address is an address on loopback for a server that is ended and started again. Its port is outside of the range of
// ephemeral ports. So no other process gets it in between, and no client that retries connects to itself.
func Address(t testing.TB) string {
	t.Helper()
	for range 100 {
		address := fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000))
		listener, err := net.Listen("tcp", address)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return address
	}
	t.Fatal("no free port")
	return ""
}

// Races is an error with the report of the first data race in a gateway's log; nil if there is none.
func Races(log string) error {
	if _, report, found := strings.Cut(log, "WARNING: DATA RACE"); found {
		return fmt.Errorf("data race in the gateway:%s", report)
	}
	return nil
}

// Tail is the end of a text: so many lines of it at most.
func Tail(text string, lines int) string {
	all := strings.Split(text, "\n")
	return strings.Join(all[max(0, len(all)-lines):], "\n")
}

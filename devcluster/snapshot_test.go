package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestCopiedTreeIsTheSameWithHolesAndWithoutThem(t *testing.T) {
	from, to := filepath.Join(t.TempDir(), "from"), filepath.Join(t.TempDir(), "to")
	if err := os.MkdirAll(filepath.Join(from, "member", "wal"), 0o700); err != nil {
		t.Fatal(err)
	}
	zeros, ones := make([]byte, 200_000), bytes.Repeat([]byte{1}, 70_000)
	files := map[string][]byte{
		"empty":           {},
		"zeros":           zeros,
		"member/full":     ones,
		"member/wal/hole": bytes.Join([][]byte{ones, zeros, ones, zeros}, nil),
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(from, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := copyTree(to, from); err != nil {
		t.Fatal(err)
	}
	for name, want := range files {
		got, err := os.ReadFile(filepath.Join(to, name))
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s: %d bytes (%v), want the same %d bytes", name, len(got), err, len(want))
		}
	}
}

func TestReservedPortRefusesConnectionsAndListeners(t *testing.T) {
	port, release, err := reservePort()
	if err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", port)
	if conn, err := net.Dial("tcp", address); err == nil {
		conn.Close()
		t.Error("something accepts connections to a reserved port")
	}
	if listener, err := net.Listen("tcp", address); err == nil {
		listener.Close()
		t.Error("another could listen on a reserved port")
	}
	release()
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatalf("listening on a port given back: %v", err)
	}
	listener.Close()
}

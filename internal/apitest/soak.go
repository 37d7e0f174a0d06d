package apitest

import (
	"os"
	"strconv"
	"testing"
	"time"
)

// Soak is with which seed a random test begins, which $KUBECAST_SEED may say, and for how long there are to be more of
// them, which $KUBECAST_SOAK does; 0: there are as many as the test has each time.
func Soak(t testing.TB, usual uint64) (first uint64, lasting time.Duration) {
	t.Helper()
	first = usual
	var err error
	if text := os.Getenv("KUBECAST_SEED"); text != "" {
		if first, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal("KUBECAST_SEED: ", err)
		}
	}
	if text := os.Getenv("KUBECAST_SOAK"); text != "" {
		if lasting, err = time.ParseDuration(text); err != nil {
			t.Fatal("KUBECAST_SOAK: ", err)
		}
	}
	return first, lasting
}

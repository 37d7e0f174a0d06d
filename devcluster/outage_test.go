package main

import (
	"testing"
	"time"
)

// TestOutageLongerThanAComponentsPatienceLeavesTheCluster: a controller manager that has just been started gives an API
// server ten seconds, and ends if it does not answer; so none may be there while there is none to answer.
func TestOutageLongerThanAComponentsPatienceLeavesTheCluster(t *testing.T) {
	cluster := startUp(t, install(t), t.TempDir(), "--jobs", "0", "--nodes", "2")
	cluster.fault(t, "apiserver-kill")
	cluster.fault(t, "apiserver-start") // its clients have just been started, too
	cluster.fault(t, "apiserver-kill")
	select {
	case <-cluster.done:
		t.Fatalf("the cluster ended in an outage: %v, %s", cluster.err, cluster.stderr)
	case <-time.After(13 * time.Second):
	}
	cluster.fault(t, "apiserver-start")
}

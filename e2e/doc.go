// Package e2e tests Kubecast from outside: the gateway as a process, built with the race detector, on a real control
// plane. Tests are named after the hazard that they guard against. They do not look inside the gateway: they compare
// what it sends with what the API server says, by kubectl's lists and by their own watches.
//
// The tests need the development control plane (make build controlplane). Without it they are skipped, or fail where
// CI is set.
package e2e

// Package e2e tests Kubecast from outside: the gateway as a process, built with the race detector, on a real control
// plane. Tests are named after the hazard they guard against. Nothing in them looks inside the gateway; what it sends
// is compared with what the API server says, by kubectl's lists and by watches of the tests' own.
//
// The tests need the development control plane (make build controlplane). Without it they are skipped, or fail where
// CI is set.
package e2e

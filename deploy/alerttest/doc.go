// Package alerttest shows that the alerts of deploy/prometheus.yaml fire for what they are about, and for nothing else, as
// Prometheus' own engine evaluates them. It is a module of its own, which keeps Prometheus out of the gateway's.
package alerttest

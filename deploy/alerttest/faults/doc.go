// Package faults brings about what each alert is about, on real gateways before a real control plane, and shows that a real
// Prometheus sees it: the same scraping, storage and rules as in the server. With no fault, no alert fires.
//
// Windows and `for` of the rules are a sixtieth of what they are (see scale), so that nobody waits for ten minutes. Thresholds are
// not touched, nor is anything of the gateways.
package faults

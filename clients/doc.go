// Package clients tries the gateway with event stream clients that other people wrote, and through ingresses that
// other people run: what works with them decides, not what a specification would allow. The gateway and its control
// plane are real, and so are Chromium, nginx and HAProxy.
//
// The clients run in drivers, one for each family (node/npm.mjs, node/chromium.mjs, golang), which open streams and
// report what they do; what it means is decided here, in one place. What was observed is the table in docs/clients.md,
// which the test writes with -update and else compares.
package clients

// Package clients tests the gateway with event stream clients that others wrote, and through ingresses that others
// run. What works with them counts, not what a specification would allow. The gateway and its control plane are real,
// and so are Chromium, nginx and HAProxy.
//
// The clients run in drivers, one for each family (node/npm.mjs, node/chromium.mjs, golang). A driver opens streams,
// and reports what happens to them; the tests here decide what that means. The observations are the table in
// docs/clients.md. With -update the test writes the table, else it compares.
package clients

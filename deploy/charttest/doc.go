// Package charttest holds the tests of the chart, deploy/chart, by Helm 4 and 3 as Go modules, of which the gateway's own module
// shall know nothing. Package e2e has the tests on a real control plane: it takes what is rendered here, in testdata.
package charttest

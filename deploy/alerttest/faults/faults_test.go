package faults

import (
	"maps"
	"slices"
	"testing"

	"github.com/kubecast/kubecast/deploy/alerttest"
)

// faults are what brings each alert about. Those of one scene share its gateways.
var faults = []struct{ alert, fault, scene string }{
	{"KubecastAbsent", "the only gateway is killed", "killed"},
	{"KubecastRestarts", "a gateway is killed and started again, three times", "killed"},
	{"KubecastReplicaDown", "of two replicas one has a configuration that is refused, so it ends at each start", "refused"},

	{"KubecastMemoryFull", "a gateway has less memory than it needs for itself (GOMEMLIMIT)", "memory"},
	{"KubecastMemorySmall", "a gateway has less memory than its objects, with the rings of their versions, may come to need", "memory"},
	{"KubecastDescriptorsShort", "connections are opened to a gateway with ulimit -n 1024", "descriptors"},

	{"KubecastConfigurationNotUsed", "a key that there is not is written into the configuration", "configuration"},
	{"KubecastRestartNeeded", "a key that is read at the start is changed", "configuration"},
	{"KubecastCertificateEnds", "the certificate ends in a day; then a key is written that is another's", "configuration"},
	{"KubecastIssuerKeysOld", "nobody listens where an issuer's keys are", "configuration"},

	{"KubecastCacheStale", "the API server refuses lists and watches of pods", "cluster"},
	{"KubecastPermissionsUnconfirmed", "the API server answers, and fails whoever reads bindings", "cluster"},
	{"KubecastPermissionsMirrorOld", "the same, for a minute", "cluster"},
	{"KubecastNotReady", "the same, for more than a minute", "cluster"},
	{"KubecastPermissionsUndecided", "the API server fails SubjectAccessReviews, and users go on asking", "cluster"},
	{"KubecastUpstreamRefuses", "the same: these are requests of the gateway", "cluster"},

	{"KubecastDenials", "a user asks for what they may not see, again and again", "clients"},
	{"KubecastSignInsRefused", "a script goes on with a token that is none", "clients"},
	{"KubecastLimitsMet", "a client opens streams beyond its limit, in a loop", "clients"},
	{"KubecastResets", "clients come back with ids of another gateway", "clients"},
	{"KubecastAuditLinesLost", "the audit log's disk is full", "clients"},
	{"KubecastEventsLate", "the gateway gets CPU for a third of the time only, as by a limit", "throttled"},

	{"KubecastHistoryAway", "a gateway starts while its PostgreSQL is away", "database"},
	{"KubecastHistoryUnrecorded", "the database can be read, and not written", "database"},
	{"KubecastHistoryBehind", "the same, for two minutes", "database"},
	{"KubecastDigestsOverdue", "the same, for two minutes after a digest was due", "database"},
	{"KubecastWebhookUnsent", "the same: nobody can take the lease", "database"},
	{"KubecastHistorySchemaRefused", "a later release has changed the schema", "schema"},

	{"KubecastWebhookWaits", "a receiver is away, and an hour passes (in the database)", "webhooks"},
	{"KubecastWebhookOff", "a receiver answers 410", "webhooks"},
	{"KubecastWebhookExpired", "a receiver is away until notifications.keep ends (in the database)", "webhooks"},
}

// scenes bring faults about, see by the servers that they return which alerts fire, and mend them.
var scenes = map[string]func(t *testing.T, s *stage) *server{
	"killed": killed, "refused": refused, "memory": memory, "descriptors": descriptors, "configuration": configuration, "cluster": cluster,
	"clients": clients, "throttled": throttled, "database": database, "schema": schema, "webhooks": webhooks,
}

// Each alert fires in a real Prometheus for the fault that it is about.
func TestEachAlertFiresForItsFault(t *testing.T) {
	for scene, bring := range scenes {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			fired := bring(t, onStage(t)).everFired()
			for _, f := range faults {
				if _, has := fired[f.alert]; f.scene == scene && !has {
					t.Errorf("%s did not fire, although %s", f.alert, f.fault)
				}
			}
		})
	}
}

// An alert that is added comes with a fault that brings it about.
func TestEachAlertHasAFault(t *testing.T) {
	rules, err := alerttest.Rules("../../prometheus.yaml")
	if err != nil {
		t.Fatal(err)
	}
	want, has := map[string]bool{}, map[string]bool{}
	for _, rule := range rules {
		want[rule.Alert] = true
	}
	for _, f := range faults {
		has[f.alert] = true
		if scenes[f.scene] == nil {
			t.Errorf("%s has the scene %q, which there is not", f.alert, f.scene)
		}
	}
	for _, alert := range slices.Sorted(maps.Keys(want)) {
		if !has[alert] {
			t.Errorf("nothing brings %s about", alert)
		}
	}
	for _, alert := range slices.Sorted(maps.Keys(has)) {
		if !want[alert] {
			t.Errorf("%s has a fault, and there is no such alert", alert)
		}
	}
}

package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Two gateways on one cluster honour each other's positions. A client that is cut off again and again, and comes back
// to either of them, is told everything once, without a reset.
func TestTwoGatewaysHonourEachOthersPositions(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "replica-a", "replica-b")
	gateways := []*gateway{s.sharedGateway(t), s.startGateway(t, gatewayOptions{})}
	gateways[1].waitReady(t)

	random := seed(t)
	c := &churn{namespaces: []string{"replica-a", "replica-b"}, test: "replica", random: random}
	cuts := cutter(random)
	followers, witnesses := map[string]*follower{}, map[string]*witness{}
	for name, scope := range c.scopes() {
		own := rand.New(rand.NewPCG(random.Uint64(), 1))
		witnesses[name] = s.watchDirectly(t, scope)
		followers[name] = follow(t, &follower{
			name: name, token: s.viewer(t), path: scope.path(), watches: single(), connect: byLibrary, lasts: cuts,
			address: func(int) string { return gateways[own.IntN(2)].url },
			// Changes that a gateway has to catch up with may be told in another order.
			relists: true,
		})
	}
	for _, f := range followers {
		f.waitSynced(t)
	}
	finish := s.startChurn(t, c)
	followers["all namespaces"].waitEvents(t, 200)
	finish()
	for name, scope := range c.scopes() {
		c.waitTold(t, followers[name], "", scope)
		checkNothingLost(t, followers[name], "", witnesses[name])
		if resets := followers[name].resets(t, ""); len(resets) > 0 {
			t.Errorf("%s was reset: %q", name, resets)
		}
	}
}

// When both gateways have reached a position, the one that did not give it continues exactly after its event.
func TestPositionOfAnotherGatewayIsExact(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	s.namespaces(t, "exchange")
	manifest, group := crd("exchange") // a kind that nothing else changes
	s.kubectl(t, manifest, "apply", "-f", "-")
	s.kubectl(t, "", "wait", "--for=condition=Established", "crd", "trainings."+group)
	a, b := s.sharedGateway(t), s.startGateway(t, gatewayOptions{})
	b.waitReady(t)
	s.allow(t, "testpositionofanothergatewayisexact", group, "trainings")
	path := "/apis/" + group + "/v1alpha1/namespaces/exchange/trainings"
	mustKnow(t, s.viewer(t), path, a, b)
	create := func(name string) {
		s.kubectl(t, fmt.Sprintf(`{"apiVersion": "%s/v1alpha1", "kind": "Training", "metadata": {"name": %q, "namespace": "exchange"}}`, group, name),
			"create", "-f", "-")
	}
	create("before")
	for _, g := range []*gateway{a, b} { // otherwise the list on which the first stream stands can be the one before it
		eventually(t, "the gateway has it", func() error {
			if read := g.get(t, s.viewer(t), path); !strings.Contains(read.body, `"before"`) {
				return fmt.Errorf("%d, %s", read.code, read.body)
			}
			return nil
		})
	}
	id := ""
	for i, g := range []*gateway{a, b, a, b} {
		header := http.Header{}
		if id != "" {
			header.Set("Last-Event-ID", id)
		}
		stream := s.open(t, g, path, header)
		if id == "" {
			stream.mustEvent(t, "added")
			stream.mustEvent(t, "synced")
		} else if read := stream.mustEvent(t, "added"); !regexp.MustCompile(fmt.Sprintf(`"name":"while-away-%d"`, i)).MatchString(read.data) {
			t.Fatalf("told was %+v", read)
		}
		create(fmt.Sprintf("live-%d", i))
		id = stream.mustEvent(t, "added").id
		stream.close()
		create(fmt.Sprintf("while-away-%d", i+1))
	}
}

// A position that no server has reached yet leads to a reset with the reason "ahead".
func TestPositionAheadIsReset(t *testing.T) {
	t.Parallel()
	s := onStage(t)
	g := s.sharedGateway(t)
	s.namespaces(t, "ahead")
	if _, err := s.kube.CoreV1().ConfigMaps("ahead").Create(context.Background(), configMap("ahead", "one", nil), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	scope := scope{kind: configMapsKind, namespace: "ahead"}
	now, err := parsePosition(s.firstID(t, g, scope), single())
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{"Last-Event-Id": {now.epoch + "." + strconv.FormatUint(now.versions[""]+1_000_000, 10)}}
	stream := s.open(t, g, scope.path(), header)
	if reset := stream.mustEvent(t, "reset"); reset.reason(t) != "ahead" || reset.id != now.epoch+".0" {
		t.Errorf("the reset is %+v", reset)
	}
	stream.find(t, "synced")
}

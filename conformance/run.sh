#!/usr/bin/env bash
# Runs Kubernetes' own end-to-end tests of its API machinery, as far as they are about reading, at the API server and through the gateway,
# and prints a line for each case. A proxy splits requests: writes, and what the gateway does not have, go to the API server.
#
#   FOCUS=regexp   which cases; none if it is empty
#   SUITES=names   which suites of test/cmd, Kubernetes' tests of kubectl; none if it is empty
set -euo pipefail
cd "$(dirname "$0")/.."

focus=${FOCUS-'sig-api-machinery.*(Watchers|chunking|Server.*(Table|tables)|Discovery|CustomResourceDefinition Watch|API Streaming|health handlers|client-go should negotiate|Server request timeout|server version|OpenAPIV3 should (round trip|publish)|CustomResourceDefinition resources|Generated clientset)'}
# It waits ten minutes for etcd's compaction, which the development control plane does only if it is told to.
skip='original version has been compacted'
suites=${SUITES-kubectl_version kubectl_results RESTMapper_evaluation assert_short_name assert_singular_name assert_categories ambiguous_shortname
	kubectl_get kubectl_sort_by kubectl_all_namespace kubectl_response_compression template_output deprecated_api resource_aliasing
	kubectl_events kubectl_request_timeout wait kubectl_explain explain_crd_with_additional_properties swagger kubectl_local_proxy
	kubectl_auth_whoami crd_deletion_recreation}
out=$(mktemp -d)
pids=()
finish() {
	trap - EXIT INT TERM
	for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
	rm -rf "$out"
}
trap finish EXIT
trap 'exit 1' INT TERM

echo "building the tests"
[ -z "$focus" ] || go test -C conformance -vet=off -c -o "$out/suite" ./suite
go build -C conformance -o "$out/split" ./split
go build -C conformance -o "$out/results" ./results

bin/devcluster up --dir "$out/cluster" --nodes 2 --jobs 0 >"$out/devcluster.log" 2>&1 &
pids+=($!)
until grep -q '^ready$' "$out/devcluster.log"; do
	kill -0 "${pids[0]}" 2>/dev/null || { cat "$out/devcluster.log"; exit 1; }
	sleep 0.2
done
bin/devcluster kubectl --dir "$out/cluster" create clusterrolebinding conformance --clusterrole=cluster-admin --group=conformance
bin/gateway token --key "$out/key.pem" --user conformance --group conformance --ttl 12h >"$out/token"
# One user runs all, and opens more watches at once than users may: a hundred in one case.
cat >"$out/gateway.yaml" <<YAML
auth:
  jwt:
  - {issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: $out/key.pem.pub}
history: {database: none}
requests: {perSecond: 0, perUser: 0}
stream: {perUser: 0, perAddress: 0, watchesPerUser: 0}
YAML
bin/gateway serve --config "$out/gateway.yaml" --kubeconfig "$out/cluster/kubeconfig" --listen 127.0.0.1:0 --ops-listen 127.0.0.1:0 >"$out/gateway.log" 2>&1 &
pids+=($!)
until grep -qs 'msg=listening' "$out/gateway.log"; do
	kill -0 "${pids[1]}" 2>/dev/null || { cat "$out/gateway.log"; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/.*msg=listening addr=\([^ ]*\).*/\1/p' "$out/gateway.log")
for to in api gateway; do
	# Tests compare what they read with what writes answered them, of which the gateway shows less.
	how=(-shadow -diffs "$out/differences" -same -fresh -discovery-of-api)
	[ $to = gateway ] || how=(-only=api)
	"$out/split" -kubeconfig "$out/cluster/kubeconfig" -gateway "http://$address" -token-file "$out/token" -out "$out/$to.kubeconfig" "${how[@]}" >"$out/split.log" 2>&1 &
	pids+=($!)
	until [ -s "$out/$to.kubeconfig" ]; do sleep 0.1; done
	[ -n "$focus" ] || continue
	echo "running them ($to)"
	"$out/suite" -kubeconfig "$out/$to.kubeconfig" -provider local -dump-logs-on-failure=false -ginkgo.focus "$focus" -ginkgo.skip "$skip" \
		-ginkgo.timeout 20m -ginkgo.no-color -ginkgo.json-report "$out/$to.json" >"$out/$to.txt" 2>&1 || true
done
failed=0
[ -z "$focus" ] || "$out/results" "$out/api.json" "$out/gateway.json" || failed=1

# The suites ask for one node, of this name, on which no pod runs.
bin/devcluster kubectl --dir "$out/cluster" delete nodes --all
echo '{"apiVersion":"v1","kind":"Node","metadata":{"name":"127.0.0.1"},"spec":{"unschedulable":true}}' | bin/devcluster kubectl --dir "$out/cluster" create -f -
kubernetes=$(cd devcluster && go list -m -f '{{.Dir}}' k8s.io/kubernetes)
for to in api gateway; do
	echo "running test/cmd ($to)"
	# shellcheck disable=SC2086 # names without spaces
	conformance/testcmd.sh "$kubernetes" "$PWD/bin/controlplane" "$out/$to.kubeconfig" "$out/testcmd-$to" $suites | tee "$out/testcmd-$to.txt"
done
while read -r suite at _; do
	if [ "$at" = passed ] && ! grep -q "^$suite passed" "$out/testcmd-gateway.txt"; then
		echo "$suite passes at the API server only"
		failed=1
	fi
done <"$out/testcmd-api.txt"

echo "what the gateway answered to them otherwise than the API server:"
if [ -s "$out/differences" ]; then
	cat "$out/differences"
	failed=1
else
	echo "nothing"
fi
exit $failed

#!/usr/bin/env bash
# Runs Kubernetes' own end-to-end tests of its API machinery, as far as they are about reading, at the API server and through the gateway,
# and prints a line for each case. A proxy splits requests: writes, and what the gateway does not have, go to the API server.
#
#   FOCUS=regexp   which cases
set -euo pipefail
cd "$(dirname "$0")/.."

focus=${FOCUS:-'Watchers|chunking|Server.*(Table|tables)|Discovery|CustomResourceDefinition Watch|API Streaming|health handlers'}
# The first of these waits for etcd's compaction, ten minutes long; the gateway's tokens stay good while nothing changes. The second one only
# writes, which goes to the API server; the proxy once hung there.
skip='original version has been compacted|406 for a backend'
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
go test -C conformance -vet=off -c -o "$out/suite" ./suite
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
until grep -q 'msg=listening' "$out/gateway.log"; do
	kill -0 "${pids[1]}" 2>/dev/null || { cat "$out/gateway.log"; exit 1; }
	sleep 0.1
done
address=$(sed -n 's/.*msg=listening addr=\([^ ]*\).*/\1/p' "$out/gateway.log")
for to in api gateway; do
	only=
	[ $to = gateway ] || only=api
	"$out/split" -kubeconfig "$out/cluster/kubeconfig" -gateway "http://$address" -token-file "$out/token" -out "$out/$to.kubeconfig" -only="$only" \
		-same -fresh -discovery-of-api >"$out/split.log" 2>&1 &
	pids+=($!)
	until [ -s "$out/$to.kubeconfig" ]; do sleep 0.1; done
	echo "running them ($to)"
	"$out/suite" -kubeconfig "$out/$to.kubeconfig" -provider local -dump-logs-on-failure=false -ginkgo.focus "$focus" -ginkgo.skip "$skip" \
		-ginkgo.timeout 20m -ginkgo.no-color -ginkgo.json-report "$out/$to.json" >"$out/$to.txt" 2>&1 || true
done
"$out/results" "$out/api.json" "$out/gateway.json"

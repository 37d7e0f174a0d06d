#!/usr/bin/env bash
# Every benchmark, each beside its baselines in the same minutes; `make bench` builds what it needs first. It takes about
# an hour on two cores and prints a table for each workload. Absolute figures are the machine's; ratios are
# Kubecast's. It fails if an event was lost or told twice, not if a target is missed.
#
#   QUICK=1        small and short, to see whether everything works
#   ROWS=10000000  among how many transitions pages of the history are looked for; 2,000,000 by default, of which the databases are
#                  full within minutes
set -euo pipefail
cd "$(dirname "$0")/.."

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/" ./bench/fanout ./bench/endtoend ./bench/memory ./bench/rest ./bench/permissions ./bench/hostile ./bench/history ./bench/thin ./bench/replicas ./bench/queues ./bench/scale

quick=() pods=()
[ -z "${QUICK:-}" ] || quick=(-quick) pods=(-pods 200)

failed=()
# part NAME COMMAND… runs one program; the others run even if it fails.
part() {
	local name=$1
	shift
	printf '\n── %s\n' "$name"
	"$@" || failed+=("$name")
}

echo "$(nproc) processors, $(awk '/MemTotal/ {printf "%d GiB", $2 / 1048576}' /proc/meminfo), $(go version | cut -d' ' -f3)," \
	"Kubecast $(bin/gateway version); load average before: $(cut -d' ' -f1 /proc/loadavg)"
part "fan-out: 2 KiB events to many clients" "$dir/fanout" -gateway bin/gateway "${quick[@]}"
part "thin lines: 20,000 pods as varied as real ones, in each form and coding" "$dir/thin" -gateway bin/gateway "${quick[@]}"
part "end to end: a real control plane, and the API server's own watches beside it" "$dir/endtoend" -gateway bin/gateway "${quick[@]}"
part "lists and objects: 10,000 pods, and the API server beside it" "$dir/rest" -gateway bin/gateway "${quick[@]}"
part "permissions: 1,000 streams of 200 users while their bindings change" "$dir/permissions" -gateway bin/gateway "${quick[@]}"
part "one hostile user: what 200 good ones notice of each means" "$dir/hostile" -gateway bin/gateway "${quick[@]}"
part "the history of jobs: each database, and pages among ${ROWS:-2000000} transitions" \
	"$dir/history" -gateway bin/gateway -rows "${ROWS:-2000000}" "${quick[@]}"
part "replicas that come and go: 5,000 streams behind nginx and HAProxy" "$dir/replicas" -gateway bin/gateway "${quick[@]}"
part "scale: 100,000 browsers at seven edges of one core, of which the core and an edge are killed" "$dir/scale" -gateway bin/gateway "${quick[@]}"
part "queues: how sure starts of jobs are, and 1,000 viewers of a queue of 1,000 jobs" "$dir/queues" -gateway bin/gateway "${quick[@]}"
part "memory: what a cached object costs" "$dir/memory" "${pods[@]}"
printf '\n── the parts within: microseconds and allocations\n'
go test -run '^$' -bench . -benchmem ./internal/... 2>/dev/null | grep -E '^(Benchmark|pkg:)' | tee "$dir/parts" || failed+=("go test -bench")
awk '/^BenchmarkAuthorize\// && $3 / 1000 > most { most = $3 / 1000 }
	END { if (most) printf "  target authorizing a request among 10,000 bindings, in µs: at most 5, is %.2f: %s\n", most, most <= 5 ? "reached" : "NOT reached" }' "$dir/parts"

if [ ${#failed[@]} -gt 0 ]; then
	echo
	echo "failed: ${failed[*]}"
	exit 1
fi

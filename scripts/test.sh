#!/usr/bin/env bash
# Every test: Go with the race detector, the end-to-end tests on a real control plane, the SDK's, and the portal's in
# browsers. What is missing is installed where that is possible (Debian, as root); a part that cannot run is named in
# the last lines, and with CI set it is a failure. Those who see only the last 60 lines of the log see all of what failed:
# why, in short, and at the very end a line for each part and each test.
set -uo pipefail
cd "$(dirname "$0")/.."

exec 4>&2 # what scripts/downloads.sh says is for whoever looks on, and in no log
logs=$(mktemp -d)
touch "$logs/failed" "$logs/skipped" "$logs/tests"
lane= # the process group of the parts that run beside another one
trap '[ -z "$lane" ] || kill -- "-$lane" 2>/dev/null; rm -rf "$logs"' EXIT
trap 'exit 130' INT TERM

# skip TEXT notes what the last lines say was skipped.
skip() { echo "$1" >>"$logs/skipped"; }

# processor sets used: the processor time, in seconds, of all programs that this shell has run to their end.
processor() {
	local file=$logs/times.$BASHPID
	times >"$file" # not in a pipe, which is a shell of its own that has run nothing
	used=$(awk -F '[ms ]+' 'NR == 2 { printf "%d", ($1 + $3) * 60 + $2 + $4 }' "$file")
}

# part NAME COMMAND… runs one part, and says how it went, and whether it computed or waited.
part() {
	local name=$1 started=$SECONDS how=ok used before
	shift
	echo "── $name"
	processor
	before=$used
	"$@" || { how=FAILED && echo "$name" >>"$logs/failed"; }
	processor
	echo "── $name: $how ($((SECONDS - started)) s, $((used - before)) s of processor)"
}

# aside NAME COMMAND… is part for what runs beside another part: all that it prints is shown once it is through.
aside() {
	part "$@" >"$logs/aside" 2>&1 </dev/null
	cat "$logs/aside"
}

# web_test SCRIPT runs one of the web's npm scripts.
web_test() {
	local log=$logs/web status
	npm --prefix web run "$1" --silent 2>&1 | tee "$log"
	status=${PIPESTATUS[0]}
	sed -i 's/\x1b\[[0-9;]*m//g' "$log"
	sed -nE '/\([0-9]+ tests?[^)]*\)/! s/^ *[✓×] (.*[^ ]) +([0-9]+)ms.*$/\2 \1/p' "$log" | slowest 1000 # but for files
	[ "$status" = 0 ] && return
	sed -nE 's/^ *FAIL +//p' "$log" | awk '!seen[$0]++' >>"$logs/tests"
	why web "$(grep -A 2 -E '^ *FAIL |Error: ' "$log" | grep -vE '^(--|[- +]*)$' | cut -c1-300)"
	return 1
}

# python_test runs the Python client's own tests; the conformance suite, and those at a real gateway, are Go's and the SDK's.
python_test() {
	local log=$logs/python
	(cd clients/python && PYTHONPATH=src PYTHONDONTWRITEBYTECODE=1 python3 -W error -m unittest discover -s tests 2>&1) | tee "$log"
	[ "${PIPESTATUS[0]}" = 0 ] && return
	sed -nE 's/^(FAIL|ERROR): //p' "$log" >>"$logs/tests"
	why rest "$(grep -E '^(FAIL|ERROR): |^[A-Za-z.]*(Error|Exception)' "$log" | cut -c1-300)"
	return 1
}

# need COMMAND PACKAGE… installs Debian packages unless the command is there.
need() {
	local command=$1
	shift
	command -v "$command" >/dev/null && return
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		echo "── installing $*"
		{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@"; } \
			>"$logs/apt" 2>&1 || tail -n 5 "$logs/apt"
	fi
	command -v "$command" >/dev/null
}

# why KIND TEXT keeps why something failed, for the end: of the web, or of the rest.
why() { sed 's/^/  /' <<<"${2:-no message was found; see above}" >>"$logs/why.$1"; }

# first N FILE shows the first lines of a file that may be missing, and says how many there are more.
first() {
	[ -s "$2" ] || return 0
	awk -v n="$1" 'NR <= n { print } END { if (NR > n) print "  … and " NR - n " lines more" }' "$2"
}

# slowest UNIT names those ten of its lines, each a time and a test, that took longest. A second has so many units.
slowest() {
	echo "── the ten slowest, in seconds, beside others:"
	sort -rn | head -n 10 | awk -v unit="$1" '{ time = $1; $1 = ""; printf "  %.2f%s\n", time / unit, $0 }'
}

# go_test DIRECTORY FLAG… runs a module's tests, or those of the packages in $only; of what passes it shows one line a package, once it is through.
go_test() {
	local log status=0 packages test module=$1
	log=$(mktemp -p "$logs")
	shift
	packages=$(scripts/downloads.sh "$module" go list -C "$module" -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' "${only:-./...}" | wc -l)
	# No more than two packages at a time: several of them keep both cores busy, and share the machine with a cluster.
	# go vet, of which each test would run a part again on all that it is built of, is the linters'.
	scripts/downloads.sh "$module" go test -C "$module" "$@" -vet=off -p 2 -timeout 30m -v "${only:-./...}" 2>&1 | tee "$log" |
		awk -v all="$packages" '/^(ok  |FAIL)\t/ { print $0 " (" ++n " of " all ")"; fflush() }'
	if [ "${PIPESTATUS[0]}" != 0 ]; then
		grep -vE '^(=== |    --- PASS|--- PASS|\?)' "$log" | tail -n 400
		status=1
		why rest "$(awk -v names="$logs/tests" -f scripts/failures.awk "$log")"
	fi
	sed -nE 's/^--- (PASS|FAIL): ([^ ]+) \(([0-9.]+)s\)$/\3 \2/p' "$log" | slowest 1
	while read -r test; do skip "$test (run go test -v for its reason)"; done < <(sed -nE 's/^ *--- SKIP: ([^ ]+).*/\1/p' "$log")
	return $status
}

need gcc gcc libc6-dev || { echo "gcc is needed for go test -race" >&2; exit 1; }
need chromium chromium fonts-dejavu-core || skip "the portal in Chromium: chromium is not installed"
need firefox-esr firefox-esr || skip "the SDK in Firefox: firefox-esr is not installed"
{ need WebKitWebDriver webkit2gtk-driver && need Xvfb xvfb; } || skip "the SDK in WebKit: webkit2gtk-driver or xvfb is not installed"
need python3 python3 || skip "the Python client: python3 is not installed"
export PATH=$PATH:/usr/sbin # where Debian keeps servers
need nginx nginx-light || skip "streams through nginx: nginx is not installed"
need haproxy haproxy || skip "streams through HAProxy: haproxy is not installed"
command -v initdb >/dev/null || need pg_createcluster postgresql || skip "the history in PostgreSQL: postgresql is not installed"
need mariadbd mariadb-server || skip "the history in MariaDB: mariadb-server is not installed"
need sqlite3 sqlite3 || skip "recipes for a backup, and for another database: sqlite3 is not installed"
part "build" make --no-print-directory build controlplane devissuer devcontrollers devvolcano
[ ! -s "$logs/failed" ] || exit 1

# compiled compiles what the Go tests are built of, and runs none. Where nothing was compiled before it takes both cores for minutes.
# Beside the end-to-end tests, which ask for promptness, each of them would have a part of one.
compiled() { scripts/downloads.sh . go list "$@" -test -export -deps ./... >/dev/null; }
# SQLite is C that was made Go: with the race detector inside, it takes five times the processor, and what it tells of is
# not ours. e2e/harness builds the gateways likewise.
race=(-race -gcflags=modernc.org/...=-race=false)
part "compiling" compiled "${race[@]}"
[ ! -s "$logs/failed" ] || exit 1

# What runs beside the Go tests, one after another, needs less than one processor: it waits for control planes, and for time to pass.
waiting() {
	aside "devcluster" go_test devcluster -race
	# These render, evaluate or run what stands outside of their modules, which Go's cache of results does not look at. They
	# begin no goroutines of ours, but for the gateways that alerts are about, which have the race detector above.
	aside "chart" go_test deploy/charttest -count=1
	aside "alerts" go_test deploy/alerttest -count=1
	aside "release" go_test release -count=1
	only=./internal/forecast/days aside "forecasts" go_test . # has a test for which the race detector is too dear
	aside "Python client" python_test
}
set -m # so that it is a process group, which ends with this script
waiting &
lane=$!
set +m
# The benchmarks' tests run the gateway that was built above.
KUBECAST_BENCH_GATEWAY=$PWD/bin/gateway part "Go" go_test . "${race[@]}"
wait "$lane" || echo "what runs beside the Go tests" >>"$logs/failed" # it ended before its last part
lane=
# It computes, so that beside the Go tests each would fail of the other's load.
part "SDK and portal" web_test test
if command -v chromium >/dev/null; then
	part "in browsers" web_test e2e
fi

echo
[ ! -s "$logs/failed" ] || echo "── why"
first 10 "$logs/why.web"
first 24 "$logs/why.rest"
sed 's/^/skipped: /' "$logs/skipped"
sed 's/^/FAILED: /' "$logs/failed"
cut -c1-200 "$logs/tests" | sed 's/^/  failed: /' >"$logs/named"
first 16 "$logs/named"
[ ! -s "$logs/failed" ] || exit 1
if [ -s "$logs/skipped" ] && [ -n "${CI:-}" ]; then
	echo "in CI nothing may be skipped"
	exit 1
fi
echo "all parts passed in $SECONDS s"

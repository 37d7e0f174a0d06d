#!/usr/bin/env bash
# What can be known without a control plane, browser, database server or race detector: gofmt, vet, the TypeScript
# compiler, and the tests that run in process. scripts/test.sh is everything.
set -uo pipefail
cd "$(dirname "$0")/.."
logs=$(mktemp -d)
trap 'rm -rf "$logs"' EXIT

unformatted() { gofmt -l cmd internal scripts web/*.go e2e bench clients/*.go | (! grep .); }

# Short tests start no servers and run no benchmark. Cached results count.
go_tests() {
	# shellcheck disable=SC2046 # package paths have no spaces
	go test -short -timeout 5m $(go list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./cmd/... ./internal/... ./web)
}

compiled() { (cd web && for part in sdk portal .; do npx --no-install tsc -p "$part" || exit 1; done); }

web_tests() { (cd web && npx --no-install vitest run --project sdk --project portal --reporter dot --silent); }

# run NAME COMMAND… says how a step went, and shows its output if it failed.
failed=0
run() {
	local name=$1 started=$SECONDS
	shift
	if "$@" >"$logs/$name" 2>&1; then
		echo "$name: ok ($((SECONDS - started)) s)"
	else
		failed=1
		grep -vE '^(ok  |\?)' "$logs/$name" | tail -n 100
		echo "$name: FAILED ($((SECONDS - started)) s)"
	fi
}

run gofmt unformatted
run vet go vet ./...
run tsc compiled
run go-test go_tests
run vitest web_tests
echo "in all $SECONDS s"
exit $failed

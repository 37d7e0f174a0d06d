#!/usr/bin/env bash
# Builds devcontrollers, with the kinds that its controllers need. Kueue has them in its module and in none of its packages, so the compiler is told that they are in crds/, and nothing is
# copied into the repository.
#
#   devcontrollers/build.sh bin/devcontrollers
set -euo pipefail

mkdir -p "$(dirname "$1")"
out=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
cd "$(dirname "$0")"

go mod download sigs.k8s.io/kueue
overlay=$(mktemp)
trap 'rm -f "$overlay"' EXIT
for file in "$(go list -m -f '{{.Dir}}' sigs.k8s.io/kueue)"/config/components/crd/bases/*.yaml; do
	printf '%s"%s": "%s"' "${comma:-}" "$PWD/crds/${file##*/}" "$file"
	comma=,
done | sed '1s/^/{"Replace": {/; $s/$/}}/' >"$overlay"
go build -overlay "$overlay" -o "$out" .

#!/usr/bin/env bash
# Builds Volcano's own scheduler and controllers from its module, and puts its kinds beside them.
#
#   devvolcano/build.sh bin/volcano
set -euo pipefail

mkdir -p "$1"
out=$(cd "$1" && pwd)
cd "$(dirname "$0")"

go mod download volcano.sh/volcano
go build -o "$out/" volcano.sh/volcano/cmd/scheduler volcano.sh/volcano/cmd/controller-manager
rm -f "$out"/*.yaml # kinds that Volcano does not have any more would be served
cp "$(go list -m -f '{{.Dir}}' volcano.sh/volcano)"/config/crd/volcano/bases/*.yaml "$out/"
chmod u+w "$out"/*.yaml

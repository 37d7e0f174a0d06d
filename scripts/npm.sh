#!/usr/bin/env bash
# Packs the packages of web/ that npm gets, as a release publishes them: with its version, and the template of `npm create kubecast` with the SDK of the
# same one. Prints the files' names, of which npm would take each.
#
#   scripts/npm.sh VERSION OUT sdk create
set -euo pipefail
version=$1 out=$(realpath "$2")
shift 2
cd "$(dirname "$0")/../web"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for package; do
	packed=$(npm pack --silent --pack-destination "$work" "./$package" | tail -n 1)
	tar -xzf "$work/$packed" -C "$work" # into $work/package
	cp ../LICENSE "$work/package"
	node sdk/links.mjs "$work/package"
	npm pkg set --silent --prefix "$work/package" "version=$version"
	if [ -d "$work/package/template" ]; then npm pkg set --silent --prefix "$work/package/template" "dependencies.@kubecast/sdk=^$version"; fi
	packed=$(npm pack --silent --ignore-scripts --pack-destination "$out" "$work/package" | tail -n 1)
	rm -r "$work/package"
	npm publish --dry-run --offline --silent --tag next "$out/$packed" >/dev/null || { echo "npm would not publish $packed" >&2; exit 1; }
	echo "$packed"
done

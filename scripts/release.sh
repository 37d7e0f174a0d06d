#!/usr/bin/env bash
# Makes everything of a release into dist/: binaries, the image, the chart, npm's packages, notes and checksums. It publishes
# nothing, and the same commit makes the same files, but that the image names who built it. What a release is: CONTRIBUTING.md, "A release".
#
#   scripts/release.sh VERSION        VERSION: such as 1.4.0 or 1.4.0-rc.1, of which CHANGELOG.md tells
#
# $REPOSITORY is where the image will be, which the chart names.
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1-}
repository=${REPOSITORY:-ghcr.io/kubecast/gateway}

fail() { echo "release: $*" >&2; exit 1; }

# https://semver.org, without build metadata, which tags of images cannot have
number='(0|[1-9][0-9]*)'
[[ $version =~ ^$number\.$number\.$number(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$ ]] || fail "\"$version\" is no version such as 1.4.0 or 1.4.0-rc.1"
[ -z "$(git status --porcelain)" ] || fail "there are changes that are in no commit"
notes=$(awk -v heading="## $version" '/^## / { inside = $0 == heading || index($0, heading " ") == 1; next } inside' CHANGELOG.md)
[[ $notes == *[![:space:]]* ]] || fail "CHANGELOG.md tells nothing under \"## $version\""

rm -rf dist
scripts/image.sh "$version"

# pack NAME DIRECTORY FILE… makes an archive whose bytes follow from its files.
pack() {
	local name=$1 from=$2
	shift 2
	tar --create --sort=name --owner=0 --group=0 --numeric-owner --mode=u+rwX,go+rX,go-w --mtime="@$(git log -1 --format=%ct)" -C "$from" "$@" | gzip -n -9 >"dist/$name"
}

for binary in dist/bin/*/gateway; do
	platform=$(basename "$(dirname "$binary")")
	cp LICENSE "$(dirname "$binary")"
	pack "kubecast_${version}_$platform.tar.gz" "$(dirname "$binary")" gateway LICENSE
done
pack "kubecast_${version}_image.tar.gz" dist/image .

# The chart and what npm gets carry the same version.
helm=$(sed -nE 's|^\t(helm.sh/helm/v4) (v[^ ]+).*|\1/cmd/helm@\2|p' deploy/charttest/go.mod)
mkdir -p dist/chart
git archive HEAD deploy/chart | tar -x -C dist/chart
values=dist/chart/deploy/chart/values.yaml
sed -i "/^image:/,/^[^ ]/ s|^  repository: .*|  repository: $repository|" "$values"
grep -qxF "  repository: $repository" "$values" || fail "the chart's values have no image.repository"
go run "$helm" package dist/chart/deploy/chart --version "$version" --app-version "$version" --destination dist
rm -rf dist/chart

scripts/npm.sh "$version" dist sdk create >/dev/null || fail "npm would not publish the packages"

echo "$notes" >dist/notes.txt
rm -r dist/bin dist/packages.json
(cd dist && find . -maxdepth 1 -type f ! -name notes.txt ! -name SHA256SUMS -printf '%P\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
cat dist/SHA256SUMS

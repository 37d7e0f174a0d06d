#!/usr/bin/env bash
# Builds the gateway's OCI image, for linux/amd64 and linux/arm64, into dist/image: an OCI layout, with what it is made of and
# how it was made beside it (release/main.go). No container engine is needed, and the same commit makes the same image.
#
#   scripts/image.sh [VERSION]
#
# $PLATFORMS are others than these, $BUILDER is the URI of who builds it, if that is not this script. To push it:
#
#   go run -C release . push "$PWD/dist/image" REGISTRY/REPOSITORY
#   go run -C release . tag REGISTRY/REPOSITORY@DIGEST TAG
set -euo pipefail
cd "$(dirname "$0")/.."
version=${1:-$(git describe --tags --always --dirty | sed 's/^v//')}

make --no-print-directory portal
mkdir -p dist
binaries=()
for platform in ${PLATFORMS:-linux/amd64 linux/arm64}; do
	binary=dist/bin/${platform//\//_}/gateway
	echo "building $binary"
	# Build information of git's would differ between a clone and a worktree of one commit.
	GOOS=${platform%/*} GOARCH=${platform#*/} CGO_ENABLED=0 go build -trimpath -buildvcs=false -ldflags "-s -w -X main.version=$version" -o "$binary" ./cmd/gateway
	binaries+=("$platform=$PWD/$binary")
done
go run ./scripts/notices -packages >dist/packages.json
echo "building dist/image"
go run -C release . image -version "$version" -revision "$(git rev-parse HEAD)" -created "$(git log -1 --format=%ct)" \
	-packages "$PWD/dist/packages.json" ${BUILDER:+-builder "$BUILDER"} -out "$PWD/dist/image" "${binaries[@]}"

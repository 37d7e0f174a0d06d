#!/usr/bin/env bash
# Puts the control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok) of the versions that
# go.mod pins together, and links it to the directory given. A binary that its project publishes is taken from there, if it
# can be had and its checksum is the published one; else it is built, from the modules that go.mod and go.sum pin.
#
# The binaries are kept in the user's cache under a name made of what they come from, so only the first time, and the first
# after a version changed, takes its minute, or ten where all has to be built.
#
#   devcluster/build.sh bin/controlplane
#
# $KUBECAST_BINARIES is where to look for published binaries in place of their projects' own addresses: a mirror with the
# paths below, or none, with which all is built.
set -euo pipefail

out=$1
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
cd "$(dirname "$0")"

# Of go.mod, the versions only: which of them our own code imports, too, makes no other control plane.
key=$({ sed 's| *//.*||' go.mod | sort; cat build.sh; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
caches=${XDG_CACHE_HOME:-$HOME/.cache}/kubecast/controlplane
cache=$caches/$key

# get URL FILE downloads a file. Who is not connected to a network is told so within seconds.
get() { curl --fail --silent --location --proto '=http,https' --connect-timeout 5 --speed-time 10 --speed-limit 10000 --output "$2" "$1"; }

# published FROM PATH MEMBER FILE CHECKSUMS downloads what is published at FROM/PATH into FILE: of an archive, its member. The
# checksum is in the file at FROM/CHECKSUMS, alone, or in a line with the name.
published() {
	local from=${KUBECAST_BINARIES:-$1} path=$2 member=$3 file=$4 checksums=$5 sum
	[ "$from" != none ] && [ -z "$nothing" ] && command -v curl >/dev/null || return 1
	if ! get "$from/$path" "$file.got" || ! get "$from/$checksums" "$file.sums"; then
		rm -f "$file.got" "$file.sums"
		return 1
	fi
	sum=$(awk -v name="$(basename "$path")" 'NF == 1 || $2 == name || $2 == "*" name { print $1; exit }' "$file.sums")
	rm "$file.sums"
	if [ "$(sha256sum <"$file.got" | cut -d' ' -f1)" != "$sum" ]; then
		echo "  $from/$path is not what its checksum says, and is not used" >&2
		rm "$file.got"
		return 1
	fi
	case $path in
	*.tar.gz) tar -xzOf "$file.got" "$member" >"$file.member" && mv "$file.member" "$file.got" ;;
	esac
	chmod +x "$file.got"
	"./$file.got" --version >/dev/null 2>&1 || "./$file.got" version --client >/dev/null 2>&1 || { rm "$file.got"; return 1; }
	mv "$file.got" "$file"
}

if [ ! -e "$cache/complete" ]; then
	mkdir -p "$caches"
	# One build at a time; who waited for another's finds it complete.
	exec 9>"$caches/lock"
	flock -n 9 || { echo "waiting for another build of the control plane"; flock 9; }
fi
if [ ! -e "$cache/complete" ]; then
	module() { go list -m -f '{{.Version}}' "$1"; }
	version=$(module k8s.io/kubernetes) etcd=$(module go.etcd.io/etcd/server/v3) kwok=$(module sigs.k8s.io/kwok)
	platform=$(go env GOOS)-$(go env GOARCH)
	nothing="" # is published that could be had: set after the first failure, so that nobody waits for six
	mkdir -p "$cache"
	stamp=k8s.io/component-base/version
	minor=${version#v1.}
	flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"
	# part NAME PACKAGE FROM PATH MEMBER CHECKSUMS
	part() {
		local name=$1 package=$2 started=$SECONDS
		shift 2
		[ ! -e "$cache/$name" ] || return 0
		if (cd "$cache" && published "$1" "$2" "$3" "$name.new" "$4"); then
			mv "$cache/$name.new" "$cache/$name"
			echo "  $name: published, had in $((SECONDS - started)) s"
			return
		fi
		if [ -z "$nothing" ]; then
			nothing=yes
			echo "building Kubernetes $version, etcd and kwok from source, as far as they cannot be had: about ten minutes on two cores, this once"
		fi
		CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$cache/$name.new" "$package"
		mv "$cache/$name.new" "$cache/$name"
		echo "  $name: built in $((SECONDS - started)) s"
	}
	for name in kube-apiserver kube-controller-manager kube-scheduler kubectl; do
		at=release/$version/bin/${platform/-//}/$name
		part $name k8s.io/kubernetes/cmd/$name https://dl.k8s.io "$at" "" "$at.sha256"
	done
	at=etcd-io/etcd/releases/download/$etcd
	part etcd go.etcd.io/etcd/server/v3 https://github.com "$at/etcd-$etcd-$platform.tar.gz" "etcd-$etcd-$platform/etcd" "$at/SHA256SUMS"
	# kwok publishes no checksums.
	part kwok sigs.k8s.io/kwok/cmd/kwok none "" "" ""
	touch "$cache/complete"
fi
# ln -sfn would take the old link away first, for a moment in which there is none.
ln -sn "$cache" "$out.$$"
mv -T "$out.$$" "$out"

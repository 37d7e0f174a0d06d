#!/usr/bin/env bash
# Builds the control plane (etcd, kube-apiserver, kube-controller-manager, kube-scheduler, kubectl, kwok) from
# the modules that go.mod and go.sum pin, and links it to the directory given.
#
# The binaries are kept in the user's cache under a name made of what they are built from, so only the first
# build, and the first after a version changed, takes its ten minutes.
#
#   devcluster/build.sh bin/controlplane
set -euo pipefail

out=$1
mkdir -p "$(dirname "$out")"
out=$(cd "$(dirname "$out")" && pwd)/$(basename "$out")
cd "$(dirname "$0")"

# Of go.mod, the versions only: which of them our own code imports, too, makes no other control plane.
key=$({ sed 's| *//.*||' go.mod | sort; cat build.sh; go env GOVERSION GOOS GOARCH; } | sha256sum | cut -c1-16)
caches=${XDG_CACHE_HOME:-$HOME/.cache}/kubecast/controlplane
cache=$caches/$key

if [ ! -e "$cache/complete" ]; then
	mkdir -p "$caches"
	# One build at a time; who waited for another's finds it complete.
	exec 9>"$caches/lock"
	flock -n 9 || { echo "waiting for another build of the control plane"; flock 9; }
fi
if [ ! -e "$cache/complete" ]; then
	version=$(go list -m -f '{{.Version}}' k8s.io/kubernetes)
	echo "building Kubernetes $version, etcd and kwok from source: about ten minutes on two cores, this once"
	mkdir -p "$cache"
	stamp=k8s.io/component-base/version
	minor=${version#v1.}
	flags="-s -w -X $stamp.gitVersion=$version -X $stamp.gitMajor=1 -X $stamp.gitMinor=${minor%%.*}"
	for package in \
		go.etcd.io/etcd/server/v3 \
		k8s.io/kubernetes/cmd/kube-apiserver \
		k8s.io/kubernetes/cmd/kube-controller-manager \
		k8s.io/kubernetes/cmd/kube-scheduler \
		k8s.io/kubernetes/cmd/kubectl \
		sigs.k8s.io/kwok/cmd/kwok; do
		name=$(basename "$package")
		[ "$package" = go.etcd.io/etcd/server/v3 ] && name=etcd
		started=$SECONDS
		echo "  $name …"
		CGO_ENABLED=0 go build -trimpath -ldflags "$flags" -o "$cache/$name.new" "$package"
		mv "$cache/$name.new" "$cache/$name"
		echo "  $name built in $((SECONDS - started)) s"
	done
	touch "$cache/complete"
fi
# ln -sfn would take the old link away first, for a moment in which there is none.
ln -sn "$cache" "$out.$$"
mv -T "$out.$$" "$out"

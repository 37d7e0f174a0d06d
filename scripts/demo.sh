#!/usr/bin/env bash
# Runs a control plane with simulated nodes and training jobs on loopback, and the gateway on it, until Ctrl-C.
# `make demo` builds what it needs first.
#
#   PORT=8080 OPS_PORT=9090   where the gateway listens; another free port if that one is taken
#   NODES=10 JOBS=0.5         simulated nodes, and jobs submitted per second
set -euo pipefail
cd "$(dirname "$0")/.."

umask 077 # keys, and a token that may see everything
dir=.demo
mkdir -p "$dir"
# What an earlier run said must not be taken for this one's.
: >"$dir/devcluster.log"
: >"$dir/gateway.log"
pids=()
finish() {
	trap - EXIT INT TERM
	for pid in "${pids[@]}"; do kill -TERM "$pid" 2>/dev/null || true; done
	for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
}
trap finish EXIT
trap 'exit 0' INT TERM

# free PORT prints PORT, or 0 (any) if somebody listens there.
free() { if (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; then echo 0; else echo "$1"; fi; }

echo "starting a Kubernetes control plane with ${NODES:-10} simulated nodes …"
bin/devcluster up --dir "$dir/cluster" --nodes "${NODES:-10}" --jobs "${JOBS:-0.5}" --examples >"$dir/devcluster.log" 2>&1 &
pids+=($!)
until grep -q '^ready$' "$dir/devcluster.log"; do
	kill -0 "${pids[0]}" 2>/dev/null || { cat "$dir/devcluster.log"; exit 1; }
	sleep 0.2
done

# Who signs in is in the group platform, which may see everything but Secrets in the development cluster, and has jobs of their own there.
token=$(bin/gateway token --key "$dir/key.pem" --user mara.lindqvist --group platform --ttl 12h)
head -c 32 /dev/urandom | base64 >"$dir/cookie.key" # so that sessions outlive the gateway
cat >"$dir/gateway.yaml" <<YAML
auth:
  cookieKeyFile: $dir/cookie.key
  jwt:
  - {issuer: "https://kubecast.local", audiences: [kubecast], publicKeyFile: $dir/key.pem.pub}
history: {stateDir: $dir}
YAML
# serve LISTEN OPS starts the gateway, and waits until it listens.
serve() {
	: >"$dir/gateway.log"
	bin/gateway serve --config "$dir/gateway.yaml" --kubeconfig "$dir/cluster/kubeconfig" \
		--listen "$1" --ops-listen "$2" >>"$dir/gateway.log" 2>&1 &
	pids[1]=$!
	until grep -q 'msg=listening' "$dir/gateway.log"; do
		kill -0 "${pids[1]}" 2>/dev/null || { cat "$dir/gateway.log"; exit 1; }
		sleep 0.1
	done
}
serve "127.0.0.1:$(free "${PORT:-8080}")" "127.0.0.1:$(free "${OPS_PORT:-9090}")"
address=$(sed -n 's/.*msg=listening addr=\([^ ]*\).*/\1/p' "$dir/gateway.log")
ops=$(sed -n 's/.*msg=listening .*ops=\([^ ]*\).*/\1/p' "$dir/gateway.log")
printf '%s\n' "$token" >"$dir/token"

cat <<TEXT

Kubecast is running. Open the portal, and say that you want to sign in:

    http://$address/#token=$token

or sign in at http://$address/ with the token in $dir/token. Submit a job of your own in another terminal, and see it wait, run and end
under "Mine"; the bell tells you then (and the browser, if you want it to):

    bin/devcluster kubectl --dir $dir/cluster create job hello --image=busybox --dry-run=client -o yaml -- sleep 20 |
      bin/devcluster kubectl --dir $dir/cluster annotate --local -f - -o yaml kubecast.io/owner=mara.lindqvist |
      bin/devcluster kubectl --dir $dir/cluster create -f -

Some of hers show lives that are worth a look, anew every four minutes: out-of-memory-…, preempted-… (for urgent-…), many-completions-…
and elastic-….

What else to try there:

    bin/gateway watch --server http://$address --token-file $dir/token /apis/batch/v1/jobs
    bin/gateway watch --server http://$address --token-file $dir/token /logs/apis/batch/v1/namespaces/NAMESPACE/jobs/NAME
    bin/devcluster kubectl --dir $dir/cluster get jobs -A
    curl -H "Authorization: Bearer \$(cat $dir/token)" 'http://$address/api/v1/namespaces/NAMESPACE/pods/NAME/log?follow=true'
    curl http://$ops/debug/kinds

The gateway is started again when it is killed; the page comes back by itself, and misses nothing:

    kill -9 ${pids[1]}

Logs are in $dir. Ctrl-C ends everything.
TEXT
while :; do
	{ wait -n "${pids[@]}" || true; } 2>/dev/null # bash says who was killed
	kill -0 "${pids[0]}" 2>/dev/null || break
	kill -0 "${pids[1]}" 2>/dev/null && continue
	serve "$address" "$ops"
	echo "the gateway was killed and is started again: kill -9 ${pids[1]}"
done
echo "the control plane has ended; see the logs in $dir" >&2
exit 1

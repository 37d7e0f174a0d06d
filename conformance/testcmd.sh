#!/usr/bin/env bash
# Runs suites of test/cmd, Kubernetes' own tests of kubectl, at the server of a kubeconfig, and prints a line for each: "SUITE passed" or
# "SUITE failed: the last fault that it printed".
#
#   testcmd.sh KUBERNETES KUBECTL KUBECONFIG LOGS SUITE...
#
# KUBERNETES is the folder of the module k8s.io/kubernetes, KUBECTL that of the program. A suite gets a copy of what it reads, since some
# write beside it. Its functions are taken from legacy-script.sh, without what that does: start a control plane, and run everything.
set -o nounset -o pipefail

kubernetes=$1 kubectl=$2 kubeconfig=$3 logs=$4
shift 4
mkdir -p "$logs"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for folder in test/cmd test/fixtures test/e2e/testing-manifests hack/lib hack/testdata; do
	mkdir -p "$work/$(dirname "$folder")"
	cp -r "$kubernetes/$folder" "$work/$folder"
done
chmod -R u+w "$work"
cd "$work"
mkdir bin
ln -s "$kubectl/kubectl" bin/kubectl
export PATH=$work/bin:$PATH KUBE_ROOT=$work THIS_PLATFORM_BIN=$work/bin TERM=dumb LANG=C
tput() { :; }
export -f tput

# part prints the lines of legacy-script.sh from one that matches to the next one that does.
part() { sed -n "/$1/,/$2/p" test/cmd/legacy-script.sh; }

# things prints the names of what suites make that is in no namespace.
things() { kubectl --kubeconfig "$kubeconfig" get namespaces,crd -o name | sort; }

things >"$work/before"
for suite in "$@"; do
	(
		set -o errexit
		KUBE_TEMP=$(mktemp -d -p "$work")
		export KUBE_TEMP HOME=$KUBE_TEMP SUPPORTED_RESOURCES='*' KUBECONFIG=$KUBE_TEMP/config KUBECACHEDIR=$KUBE_TEMP/cache
		cp "$kubeconfig" "$KUBECONFIG"
		server=$(kubectl config view -o jsonpath='{.clusters[0].cluster.server}')
		cluster=$(kubectl config view -o jsonpath='{.clusters[0].name}')
		CONTEXT=$(kubectl config current-context)
		export SECURE_API_PORT=${server##*:}
		# The suites name the server themselves, and do not check its certificate.
		kubectl config unset "clusters.$cluster.certificate-authority-data"
		kubectl config set-cluster "$cluster" --insecure-skip-tls-verify=true
		set +o nounset
		for file in hack/lib/util.sh hack/lib/logging.sh hack/lib/test.sh $(ls test/cmd/*.sh | grep -v legacy-script); do source "$file"; done
		eval "$(part '^clusterroles=' '^job=')"
		eval "$(part '^IMAGE_NGINX' '^export IMAGE_STATEFULSET_R2')"
		for name in 'function stop-proxy' 'function start-proxy' 'function check-curl-proxy-code' 'function kubectl-with-retry' 'function wait-for-pods-with-label' create_and_use_new_namespace; do
			eval "$(part "^$name" '^}')"
		done
		eval "$(part '^  export id_field=' '^  export image_field1=')"
		PROXY_HOST=127.0.0.1 SED=sed
		kube_flags=(-s "$server" --insecure-skip-tls-verify)
		kube_flags_without_token=("${kube_flags[@]}")
		kube_flags_with_token=("${kube_flags[@]}" --token=admin-token)
		set -o errexit -o nounset
		set +o pipefail
		"run_${suite}_tests"
	) >"$logs/$suite.txt" 2>&1 </dev/null
	status=$?
	# A suite that fails leaves what it has made; the next one must not find it.
	things | comm -13 "$work/before" - | xargs -r kubectl --kubeconfig "$kubeconfig" delete --timeout=1m >/dev/null 2>&1
	if [ $status = 0 ]; then
		echo "$suite passed"
	else
		echo "$suite failed: $(grep -aE 'FAIL|rror|not found|Expected' "$logs/$suite.txt" | tail -1 | cut -c1-200)"
	fi
done

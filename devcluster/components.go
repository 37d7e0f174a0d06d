package main

import (
	"fmt"
	"strings"
)

// The arguments of the components. Each has one replica, so there is no leader election. Profiling is off. Clients
// are not throttled, because tests and benchmarks write as fast as they can, and measure something else.

// etcdArgs runs etcd without fsync, since the data need not survive the machine, and with timers for a single member
// on loopback.
func etcdArgs(d directory, clientPort, peerPort int) []string {
	client := fmt.Sprintf("http://127.0.0.1:%d", clientPort)
	peer := fmt.Sprintf("http://127.0.0.1:%d", peerPort)
	return []string{
		"--name=devcluster",
		"--data-dir=" + d.etcdData(),
		"--listen-client-urls=" + client,
		"--advertise-client-urls=" + client,
		"--listen-peer-urls=" + peer,
		"--initial-advertise-peer-urls=" + peer,
		"--initial-cluster=devcluster=" + peer,
		"--socket-reuse-port=true",
		"--unsafe-no-fsync=true",
		"--heartbeat-interval=20",
		"--election-timeout=200",
		"--quota-backend-bytes=4294967296",
		"--log-level=warn",
	}
}

func apiServerArgs(d directory, etcdPort, port int, gates string) []string {
	args := []string{
		fmt.Sprintf("--etcd-servers=http://127.0.0.1:%d", etcdPort),
		"--bind-address=127.0.0.1",
		fmt.Sprintf("--secure-port=%d", port),
		"--permit-port-sharing=true", // see reservePort
		"--cert-dir=" + d.path("pki"),
		"--tls-cert-file=" + d.pki("apiserver.crt"),
		"--tls-private-key-file=" + d.pki("apiserver.key"),
		"--authorization-mode=RBAC",
		"--token-auth-file=" + d.pki("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-signing-key-file=" + d.pki("service-account.key"),
		"--service-account-key-file=" + d.pki("service-account.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--endpoint-reconciler-type=none",
		// The nodes' names are in no DNS. One kubelet answers for all of them, see kubelet.
		"--kubelet-preferred-address-types=InternalIP",
		"--kubelet-certificate-authority=" + d.pki("ca.crt"),
		"--allow-privileged=true",
		// This plugin gives new nodes a taint. No controller would remove it, since none watches over kwok's nodes.
		"--disable-admission-plugins=TaintNodesByCondition",
		"--watch-cache=true",
		// With priority and fairness off, only the two limits below throttle.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=4000",
		"--max-mutating-requests-inflight=2000",
		"--delete-collection-workers=4",
		"--profiling=false",
		// On SIGTERM the server ends its watches and then itself; without these it would wait a minute for them.
		"--shutdown-watch-termination-grace-period=1s",
		"--shutdown-send-retry-after=true",
		// History is compacted only by "fault etcd-compact", and not in the middle of a test.
		"--etcd-compaction-interval=0",
		"--etcd-count-metric-poll-period=0",
		"--event-ttl=15m",
	}
	if gates != "" {
		args = append(args, "--feature-gates="+gates)
	}
	return args
}

// controllers are the controllers that a cluster of jobs and workloads needs. Those for volumes, certificates,
// clouds, autoscaling and the health of nodes are left out: kwok's nodes have none of these.
var controllers = []string{
	"clusterrole-aggregation-controller",
	"cronjob-controller",
	"daemonset-controller",
	"deployment-controller",
	"disruption-controller",
	"endpointslice-controller",
	"garbage-collector-controller",
	"job-controller",
	"namespace-controller",
	"pod-garbage-collector-controller",
	"replicaset-controller",
	"resourcequota-controller",
	"root-ca-certificate-publisher-controller",
	"serviceaccount-controller",
	"serviceaccount-token-controller",
	"statefulset-controller",
	"ttl-after-finished-controller",
}

func controllerManagerArgs(d directory) []string {
	return []string{
		"--kubeconfig=" + d.kubeconfig(),
		"--controllers=" + strings.Join(controllers, ","),
		"--service-account-private-key-file=" + d.pki("service-account.key"),
		"--root-ca-file=" + d.pki("ca.crt"),
		"--leader-elect=false",
		"--profiling=false",
		"--secure-port=0",
		"--kube-api-qps=2000",
		"--kube-api-burst=4000",
	}
}

// schedulerConfig is a file, because the scheduler's flags for these things are deprecated.
func schedulerConfig(d directory) []byte {
	return fmt.Appendf(nil, `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: %q, qps: 2000, burst: 4000}
enableProfiling: false
`, d.kubeconfig())
}

func schedulerArgs(d directory) []string {
	return []string{"--config=" + d.path("config", "scheduler.yaml"), "--secure-port=0"}
}

// kwokConfig turns leases of nodes off: nothing looks at them, and they would be most of a quiet cluster's writes.
const kwokConfig = `apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
metadata: {name: kwok}
options:
  manageAllNodes: false
  manageNodesWithLabelSelector: "!devcluster.kubecast.io/own-kubelet"
  nodeLeaseDurationSeconds: 0
  podPlayStageParallelism: 16
  nodePlayStageParallelism: 4
  podsOnNodeSyncParallelism: 4
  enablePodsOnNodeSyncStreamWatch: true
  cidr: 10.244.0.0/16
`

func kwokArgs(d directory) []string {
	return []string{
		"--kubeconfig=" + d.kubeconfig(),
		"--config=" + d.path("config", "kwok.yaml"),
		"--v=WARN", // else it writes a line for each step of each pod
	}
}

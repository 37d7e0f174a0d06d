// A cluster to look at: made-up teams whose jobs run, with the nodes, events, logs, history, queues and notifications that belong to them.

import type { KubeObject } from '@kubecast/sdk';
import type { Change, Draft } from './cluster.ts';
import type { MockGateway } from './gateway.ts';
import { MockPast } from './past.ts';
import { seededRandom } from './random.ts';
import { MockInbox } from './told.ts';
import { MockWorkload } from './workload.ts';

type Condition = { readonly type: string; readonly status: string; readonly reason?: string; readonly message?: string; readonly lastTransitionTime?: string };
type Job = KubeObject & { readonly spec: { readonly suspend?: boolean; readonly completions: number }; readonly status: { readonly active?: number; readonly ready?: number; readonly failed?: number; readonly succeeded?: number; readonly startTime?: string; readonly conditions?: readonly Condition[] } };
type Pod = KubeObject & { readonly spec: { readonly nodeName?: string }; readonly status: { readonly phase?: string } };

const queueOf = (object: KubeObject): string => object.metadata.labels?.['kueue.x-k8s.io/queue-name'] ?? '';
const jobOf = (pod: KubeObject): string => pod.metadata.ownerReferences?.[0]?.uid ?? '';
const waits = (state: string): boolean => ['Submitted', 'Queued', 'Pending', 'Suspended'].includes(state);

export class MockWorld {
  readonly #gateway: MockGateway;
  readonly #workload: MockWorkload;
  readonly #past = new MockPast();
  readonly #inbox = new MockInbox();
  readonly #random: () => number;
  /** What each job said it would do, without a status. */
  readonly #steps = new Map<string, number>();
  #events = 0;

  /** @param username whose jobs are told of */
  constructor(gateway: MockGateway, { jobs = 120, username = 'mara.lindqvist', seed = 1 } = {}) {
    this.#gateway = gateway;
    this.#random = seededRandom(seed);
    gateway.past = this.#past;
    gateway.inbox = this.#inbox;
    for (const [token, user] of gateway.users) gateway.users.set(token, { username, ...user });
    gateway.columns.set('pods', [{ name: 'Status', type: 'string', value: (pod) => (pod as Pod).status.phase }, { name: 'Node', type: 'string', value: (pod) => (pod as Pod).spec.nodeName }]);
    gateway.columns.set('jobs.batch', [{ name: 'Completions', type: 'string', value: (job) => `${(job as Job).status.succeeded ?? 0}/${(job as Job).spec.completions}` }]);
    this.#fixtures();
    gateway.cluster.watchers.add((change) => this.#onChange(change, username));
    this.#workload = new MockWorkload(gateway.cluster, seed);
    this.#workload.populate(jobs);
    this.#tellQueues();
  }

  /** A moment passes. */
  tick(): void {
    this.#workload.tick();
    for (const pod of this.#gateway.cluster.list('pods') as Pod[]) {
      if (pod.status.phase === 'Running' && this.#random() < 0.3) this.#write(pod);
    }
    this.#gateway.logs.trim(50_000);
    this.#tellQueues();
  }

  #fixtures(): void {
    const { cluster } = this.#gateway;
    const put = (plural: string, draft: Draft & Record<string, unknown>): KubeObject => cluster.put(plural, draft);
    const old = new Date(Date.now() - 40 * 86_400_000).toISOString();
    for (let n = 0; n < 24; n++) {
      const ready = n !== 17;
      const amounts = { cpu: '64', memory: '512Gi', pods: '110', 'nvidia.com/gpu': '8' };
      put('nodes', {
        apiVersion: 'v1',
        kind: 'Node',
        metadata: { name: `gpu-node-${n}`, creationTimestamp: old, labels: { 'kubernetes.io/hostname': `gpu-node-${n}`, 'nvidia.com/gpu.product': 'A100' } },
        spec: n === 5 ? { unschedulable: true } : {},
        status: { capacity: amounts, allocatable: amounts, conditions: [{ type: 'Ready', status: ready ? 'True' : 'Unknown', reason: ready ? 'KubeletReady' : 'NodeStatusUnknown', lastTransitionTime: old }], nodeInfo: { kubeletVersion: 'v1.34.0' } },
      });
    }
    for (const namespace of ['team-vision', 'team-nlp', 'team-speech', 'team-recsys']) {
      put('configmaps', { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'training-defaults', namespace, creationTimestamp: old }, data: { epochs: '90', precision: 'bf16' } });
      put('deployments', { apiVersion: 'apps/v1', kind: 'Deployment', metadata: { name: 'tensorboard', namespace, creationTimestamp: old }, spec: { replicas: 1 }, status: { replicas: 1, readyReplicas: 1, conditions: [{ type: 'Available', status: 'True' }] } });
    }
  }

  #onChange({ resource, object, how }: Change, username: string): void {
    if (resource === 'jobs') this.#onJob(object as Job, how === 'deleted', username);
    else if (resource === 'pods' && how !== 'deleted') this.#onPod(object as Pod);
  }

  #onJob(job: Job, gone: boolean, username: string): void {
    const { uid, name, namespace = '', labels = {}, creationTimestamp = '' } = job.metadata;
    const before = this.#past.jobs.get(uid);
    const [state, at, reason, message] = gone ? ['Deleted', new Date().toISOString(), '', ''] : stateOf(job);
    const requests = { cpu: String(8 * job.spec.completions), memory: `${64 * job.spec.completions}Gi`, 'nvidia.com/gpu': String(job.spec.completions) };
    const owner = labels['kubecast.io/owner'] ?? '';
    const of = { uid, namespace, owner, queue: queueOf(job), requests, podCount: job.spec.completions, podFailures: job.status.failed ?? 0, progress: { done: job.status.succeeded ?? 0, of: job.spec.completions } };
    if (!before) this.#past.record(name, 'Submitted', { ...of, at: creationTimestamp });
    if (state === (before?.state ?? 'Submitted')) return;
    const pod = [...this.#past.runs.values()].find((run) => (run.job as { uid: string }).uid === uid) as { readonly name: string; readonly node: string } | undefined;
    const cause = state === 'Failed' || state === 'Retrying' ? { text: `main was OOM-killed (exit 137) on ${pod?.node ?? 'a node'}`, reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: pod?.name ?? '', node: pod?.node ?? '', pods: 1 } : null;
    const last = this.#past.jobs.get(uid) as { readonly startedAt: string | null } | undefined;
    const hours = last?.startedAt ? (Date.parse(at) - Date.parse(last.startedAt)) / 3_600_000 : 0;
    const used = { hours: { cpu: hours * 8 * job.spec.completions, memory: hours * 64 * job.spec.completions, gpu: hours * job.spec.completions } };
    this.#past.record(name, state, { ...of, ...used, at, reason: cause?.reason ?? reason, message, cause });
    if (state !== 'Succeeded' && state !== 'Failed') return;
    const { status: _, ...spec } = job;
    const lines = pod ? this.#gateway.logs.linesOf(namespace, pod.name, 'main', false) : undefined;
    this.#past.keep(uid, { spec, log: (lines ?? []).slice(-50).map(({ text }) => `${text}\n`).join('') });
    if (owner === username) this.#tellOwner(uid, name, state, cause?.text);
  }

  #tellOwner(uid: string, name: string, state: string, why: string | undefined): void {
    const transition = this.#past.entries.at(-1)?.data;
    this.#inbox.tell(name, state, { title: `${name} ${state.toLowerCase()}${why ? `: ${why}` : ''}`, transition: { ...transition, uid } });
  }

  #onPod(pod: Pod): void {
    const { uid, name, namespace = '', creationTimestamp: createdAt } = pod.metadata;
    const { phase = '' } = pod.status;
    const run = this.#past.runs.get(uid);
    const now = new Date().toISOString();
    const of = { uid, createdAt, node: pod.spec.nodeName ?? '', requests: { cpu: '8', memory: '64Gi', 'nvidia.com/gpu': '1' } };
    if (phase === 'Pending' && !run) {
      this.#past.run(jobOf(pod), name, { ...of, scheduledAt: createdAt });
      this.#event(pod, 'Normal', 'Scheduled', `Successfully assigned ${namespace}/${name} to ${pod.spec.nodeName}`);
    } else if (phase === 'Running' && !run?.startedAt) {
      this.#past.run(jobOf(pod), name, { uid, startedAt: createdAt });
      this.#event(pod, 'Normal', 'Started', 'Started container main');
      for (let line = 0; line < 12; line++) this.#write(pod);
    } else if ((phase === 'Succeeded' || phase === 'Failed') && !run?.endedAt) {
      const failed = phase === 'Failed';
      const options = { namespace, exitCode: failed ? 137 : 0, reason: failed ? 'OOMKilled' : 'Completed' };
      if (failed) this.#event(pod, 'Warning', 'BackOff', 'Back-off restarting failed container main');
      this.#gateway.logs.write(name, failed ? '\u001b[31mRuntimeError: CUDA out of memory\u001b[0m' : 'saved checkpoint, done', { namespace });
      this.#gateway.logs.end(name, options);
      this.#past.run(jobOf(pod), name, { uid, endedAt: now, reason: options.reason, exitCode: options.exitCode, container: 'main' });
    }
  }

  #write(pod: Pod): void {
    const { name, namespace = '', uid } = pod.metadata;
    const step = (this.#steps.get(uid) ?? 0) + 1;
    this.#steps.set(uid, step);
    const loss = (4 / Math.sqrt(step) + this.#random() * 0.1).toFixed(4);
    this.#gateway.logs.write(name, `${new Date().toISOString().slice(11, 19)} INFO step=${step * 50} loss=${loss} lr=3e-4`, { namespace });
  }

  #event(pod: Pod, type: string, reason: string, message: string): void {
    const { name, namespace = '', uid } = pod.metadata;
    const at = new Date().toISOString();
    const draft: Draft & Record<string, unknown> = {
      apiVersion: 'v1',
      kind: 'Event',
      metadata: { name: `${name}.${(++this.#events).toString(16)}`, namespace, creationTimestamp: at },
      involvedObject: { apiVersion: 'v1', kind: 'Pod', name, namespace, uid },
      ...{ type, reason, message, count: 1, firstTimestamp: at, lastTimestamp: at, source: { component: type === 'Normal' ? 'default-scheduler' : 'kubelet' } },
    };
    this.#gateway.cluster.put('events', draft);
    const events = this.#gateway.cluster.list('events');
    if (events.length > 2_000 && events[0]) this.#gateway.cluster.remove('events', events[0].metadata.uid);
  }

  #tellQueues(): void {
    const all = [...this.#past.jobs.values()].filter(({ queue }) => queue !== '');
    const names = new Map(all.map(({ queue, namespace }) => [`${namespace}/${String(queue)}`, { namespace, name: String(queue) }]));
    for (const { namespace, name } of names.values()) {
      const own = all.filter((job) => job.queue === name && job.namespace === namespace);
      const waiting = own.filter(({ state }) => waits(state));
      const running = own.filter(({ state }) => state === 'Running' || state === 'Retrying');
      const used = running.reduce((sum, { requests }) => sum + Number((requests as Record<string, string>)['nvidia.com/gpu'] ?? 0), 0);
      const jobs = waiting.map(({ uid, name: of, owner, createdAt, requests }, n) => ({ position: n + 1, clusterPosition: n + 1, namespace, queue: name, resource: 'jobs.batch', name: of, uid, owner, since: createdAt, requests, starts: null }));
      const resources = [{ flavor: 'a100', resource: 'nvidia.com/gpu', quota: '48', used: String(used), borrowed: String(Math.max(0, used - 48)) }];
      this.#gateway.queue({ name, namespace, kind: 'LocalQueue', clusterQueue: 'gpus', cohort: 'research', stopped: false, resources, waiting: waiting.length, running: running.length, jobs });
    }
  }
}

/** The state of a job, since when, and why. */
function stateOf({ spec, status, metadata }: Job): readonly [state: string, at: string, reason: string, message: string] {
  const { creationTimestamp: created = '' } = metadata;
  const { conditions = [], startTime = created, ready = 0, active = 0, failed = 0 } = status;
  const end = conditions.find(({ type }) => type === 'Complete' || type === 'Failed');
  if (end) return [end.type === 'Complete' ? 'Succeeded' : 'Failed', end.lastTransitionTime ?? startTime, end.reason ?? '', end.message ?? ''];
  if (spec.suspend) return ['Queued', created, 'Suspended', 'waits for quota'];
  if (failed > 0 && active > 0) return ['Retrying', startTime, '', ''];
  if (ready > 0) return ['Running', startTime, '', ''];
  return active > 0 ? ['Pending', created, '', ''] : ['Submitted', created, '', ''];
}

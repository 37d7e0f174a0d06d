// A cluster of people who train models, as a scripted API server has it, and the real gateway on it.

import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Gateway } from './gateway.ts';
import { freeAddress } from './processes.ts';
import { ScriptedApi, time, type ScriptedObject } from './scriptedapi.ts';

const seconds = 1_000;
export const hours = 3_600 * seconds;
export const days = 24 * hours;
export const team = 'team-vision';
export const mara = 'mara.lindqvist';
const teams = [team, 'team-nlp', 'team-speech', 'team-recsys', 'team-robotics'];
const gpu = 'nvidia.com/gpu';
const image = 'vision/trainer:2.8.1';

export interface JobOptions {
  readonly namespace?: string;
  readonly owner?: string;
  readonly gpus?: number;
  /** When it was made, in milliseconds before now. */
  readonly ago?: number;
  readonly status?: object;
}

interface Ended {
  readonly namespace?: string;
  /** In milliseconds: before now, and for how long it had run. */
  readonly ago?: number;
  readonly ran?: number;
}

const container = (gpus: number): object => {
  const resources = { cpu: '8', memory: '32Gi', ...(gpus > 0 && { [gpu]: String(gpus) }) };
  return { name: 'main', image, command: ['python', 'train.py'], resources: { requests: resources, limits: resources } };
};

const scheduled = (ago: number): object => ({ type: 'PodScheduled', status: 'True', lastTransitionTime: time(ago) });

/** A pod that has run for so long. */
export const running = (ago = 0): object => ({
  phase: 'Running',
  startTime: time(ago),
  conditions: [scheduled(ago), { type: 'Ready', status: 'True', lastTransitionTime: time(ago) }],
  containerStatuses: [{ name: 'main', image, imageID: '', ready: true, restartCount: 0, state: { running: { startedAt: time(ago) } } }],
});

/** A pod that ended so long ago, after it had run for `ran`. */
export const over = (exitCode: number, reason: string, ago = 0, ran = 0): object => ({
  phase: exitCode ? 'Failed' : 'Succeeded',
  startTime: time(ago + ran),
  conditions: [scheduled(ago + ran)],
  containerStatuses: [{ name: 'main', image, imageID: '', ready: false, restartCount: 0, state: { terminated: { exitCode, reason, startedAt: time(ago + ran), finishedAt: time(ago) } } }],
});

export const waitsFor = (reason: string, message = ''): object => ({
  phase: 'Pending',
  containerStatuses: [{ name: 'main', image, imageID: '', ready: false, restartCount: 0, state: { waiting: { reason, message } } }],
});

export const crashes = (restarts: number): object => ({
  phase: 'Running',
  startTime: time(hours),
  containerStatuses: [
    { name: 'main', image, imageID: '', ready: false, restartCount: restarts, state: { waiting: { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting' } }, lastState: { terminated: { exitCode: 137, reason: 'OOMKilled', startedAt: time(2 * hours), finishedAt: time(hours) } } },
  ],
});

const message = '0/10 nodes are available: 1 node(s) were unschedulable, 9 Insufficient nvidia.com/gpu. preemption: 0/10 nodes are available: 10 No preemption victims found for incoming pod.';
export const unschedulable = (): object => ({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message, lastTransitionTime: time() }] });

export class ScriptedWorld {
  readonly api: ScriptedApi;
  readonly gateway: Gateway;

  static async start(): Promise<ScriptedWorld> {
    const dir = await mkdtemp(join(tmpdir(), 'kubecast-world-'));
    const api = await ScriptedApi.start();
    const world = new ScriptedWorld(api, new Gateway(dir, await freeAddress()));
    world.#furnish();
    return world;
  }

  private constructor(api: ScriptedApi, gateway: Gateway) {
    this.api = api;
    this.gateway = gateway;
  }

  /** What was put into the world before was there before the gateway. */
  async startGateway(): Promise<void> {
    const { dir } = this.gateway;
    await writeFile(join(dir, 'kubeconfig'), kubeconfigOf(this.api));
    await this.gateway.write({ auth: { jwt: [await this.gateway.issuer()] }, stream: { retry: '500ms' }, history: { stateDir: dir } });
    await this.gateway.start();
  }

  /** The gateway, which looks at its configuration again, serves these worlds, too. */
  async serves(others: Readonly<Record<string, ScriptedWorld>>): Promise<void> {
    const { dir } = this.gateway;
    const clusters = [{ name: 'default', kubeconfig: join(dir, 'kubeconfig') }];
    for (const [name, { api }] of Object.entries(others)) {
      const kubeconfig = join(dir, `kubeconfig-${name}`);
      await writeFile(kubeconfig, kubeconfigOf(api));
      clusters.push({ name, kubeconfig });
    }
    await this.gateway.write({ clusters });
  }

  async stop(): Promise<void> {
    await this.gateway.stop();
    await this.api.stop();
    await rm(this.gateway.dir, { recursive: true, force: true });
  }

  #furnish(): void {
    const { api } = this;
    for (const name of ['kube-system', 'default', ...teams]) api.put('namespaces', { metadata: { name, creationTimestamp: time(365 * days) }, status: { phase: 'Active' } });
    const rules = [{ verbs: ['get', 'list', 'watch'], apiGroups: ['', 'batch'], resources: ['namespaces', 'nodes', 'pods', 'pods/log', 'events', 'jobs'] }, { verbs: ['get'], nonResourceURLs: ['*'] }];
    api.put('clusterroles', { metadata: { name: 'viewer' }, rules });
    const roleRef = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'viewer' };
    const subjects = (name: string): object[] => [{ kind: 'Group', apiGroup: 'rbac.authorization.k8s.io', name }];
    api.put('clusterrolebindings', { metadata: { name: 'platform' }, subjects: subjects('platform'), roleRef });
    for (const name of teams) api.put('rolebindings', { metadata: { name, namespace: name }, subjects: subjects(name), roleRef });
    for (let n = 0; n < 10; n++) this.#node(n);
  }

  /** One has lost its kubelet, one has a full disk, and nothing is scheduled to another. */
  #node(n: number): void {
    const allocatable = { cpu: '96', memory: '768Gi', pods: '250', [gpu]: '8' };
    const ready = { type: 'Ready', status: 'True', reason: 'KubeletReady', lastTransitionTime: time(12 * hours) };
    const lost = { type: 'Ready', status: 'Unknown', reason: 'NodeStatusUnknown', message: 'Kubelet stopped posting node status.', lastTransitionTime: time(hours) };
    const full = { type: 'DiskPressure', status: 'True', reason: 'KubeletHasDiskPressure', lastTransitionTime: time(hours) };
    this.api.put('nodes', {
      metadata: { name: `node-${n}` },
      spec: n === 7 ? { unschedulable: true } : {},
      status: { allocatable, capacity: allocatable, conditions: [n === 3 ? lost : ready, ...(n === 5 ? [full] : [])], nodeInfo: { kubeletVersion: 'v1.36.3' } },
    });
  }

  job(name: string, { namespace = team, owner = mara, gpus = 1, ago = 0, status = {} }: JobOptions = {}): ScriptedObject {
    return this.api.put('jobs', {
      metadata: { name, namespace, creationTimestamp: time(ago), annotations: { 'kubecast.io/owner': owner } },
      spec: { parallelism: 1, completions: 1, backoffLimit: 0, template: { spec: { containers: [container(gpus)], restartPolicy: 'Never' } } },
      status,
    });
  }

  /** The pod of a job, or one of nobody's. */
  pod(name: string, status: object, { of, namespace = team, node = 'node-1', gpus = 1, ago = 0 }: { of?: string; namespace?: string; node?: string | undefined; gpus?: number; ago?: number } = {}): ScriptedObject {
    const job = of === undefined ? undefined : this.api.get('jobs', namespace, of);
    const ownerReferences = job ? [{ apiVersion: 'batch/v1', kind: 'Job', name: job.metadata.name, uid: job.metadata.uid, controller: true }] : [];
    const labels = job ? { 'batch.kubernetes.io/job-name': job.metadata.name, 'batch.kubernetes.io/controller-uid': job.metadata.uid } : {};
    return this.api.put('pods', { metadata: { name, namespace, creationTimestamp: time(ago), labels, ownerReferences }, spec: { ...(node && { nodeName: node }), containers: [container(gpus)], restartPolicy: 'Never' }, status });
  }

  /** Changes an object's status. */
  now(plural: string, namespace: string, name: string, status: object): void {
    this.api.put(plural, { ...this.api.get(plural, namespace, name), status });
  }

  /** A job whose pod, `NAME-a`, runs. */
  runs(name: string, options: JobOptions & { readonly node?: string } = {}): void {
    const { namespace = team, gpus, node } = options;
    this.job(name, { ...options, status: { active: 1, ready: 1, startTime: time(options.ago) } });
    this.pod(`${name}-a`, running(options.ago), { of: name, namespace, ago: options.ago, ...(gpus !== undefined && { gpus }), ...(node !== undefined && { node }) });
  }

  /** The pod of a job that runs ends. */
  podEnds(name: string, exitCode: number, reason: string, { namespace = team, ago = 0, ran = 0 }: Ended = {}): void {
    this.api.endLog(namespace, `${name}-a`, 'main');
    this.now('pods', namespace, `${name}-a`, over(exitCode, reason, ago, ran));
  }

  fails(name: string, { namespace = team, ago = 0, ran = 0 }: Ended = {}): void {
    this.now('jobs', namespace, name, failed(ago, ran));
  }

  event(kind: 'Job' | 'Pod', namespace: string, name: string, reason: string, text: string): void {
    const { uid } = this.api.get(kind === 'Job' ? 'jobs' : 'pods', namespace, name).metadata;
    const n = this.api.all('events').length;
    this.api.put('events', { metadata: { name: `${name}.${n}`, namespace }, involvedObject: { kind, namespace, name, uid }, reason, message: text, type: 'Warning', count: 12, firstTimestamp: time(60 * seconds), lastTimestamp: time(), source: { component: 'default-scheduler' } });
  }
}

const kubeconfigOf = ({ url }: ScriptedApi): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'Config', 'current-context': 'c', contexts: [{ name: 'c', context: { cluster: 'c', user: 'u' } }], users: [{ name: 'u', user: {} }], clusters: [{ name: 'c', cluster: { server: url } }] });

const failed = (ago = 0, ran = 0): object => ({
  failed: 1,
  startTime: time(ago + ran),
  conditions: [{ type: 'Failed', status: 'True', reason: 'BackoffLimitExceeded', message: 'Job has reached the specified backoff limit', lastTransitionTime: time(ago) }],
});

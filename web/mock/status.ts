// In a word what an object is doing, `$status`, derived as the gateway derives it. Both are held to internal/objectstatus/testdata/status.json.

import type { KubeObject } from '@kubecast/sdk';

/** Any part of an object: one that is missing has missing parts. */
class Part {
  readonly #value: unknown;
  constructor(value: unknown) {
    this.#value = value;
  }
  at(...keys: readonly string[]): Part {
    let value = this.#value;
    for (const key of keys) value = value !== null && typeof value === 'object' && Object.hasOwn(value, key) ? (value as Record<string, unknown>)[key] : undefined;
    return new Part(value);
  }
  get text(): string {
    return typeof this.#value === 'string' ? this.#value : '';
  }
  get number(): number {
    return typeof this.#value === 'number' ? this.#value : 0;
  }
  get isTrue(): boolean {
    return this.#value === true;
  }
  get isThere(): boolean {
    return this.#value !== undefined && this.#value !== null;
  }
  get list(): readonly Part[] {
    return Array.isArray(this.#value) ? this.#value.map((one) => new Part(one)) : [];
  }
}

type Derive = (object: KubeObject) => string;

const conditionOf = (status: Part, type: string): Part | undefined => status.at('conditions').list.find((one) => one.at('type').text === type);
const holds = (status: Part, type: string): boolean => status.at('conditions').list.some((one) => one.at('type').text === type && one.at('status').text === 'True');
const isDeleted = (object: Part): boolean => object.at('metadata', 'deletionTimestamp').isThere;

/** As API conventions have it for all kinds. */
const conventional: Derive = (whole) => {
  const object = new Part(whole);
  if (isDeleted(object)) return 'Terminating';
  const status = object.at('status');
  for (const [type, holds_, fails] of [['Ready', 'Ready', 'NotReady'], ['Available', 'Available', 'Unavailable']] as const) {
    const condition = conditionOf(status, type);
    if (condition) return { True: holds_, False: fails }[condition.at('status').text] ?? 'Unknown';
  }
  return status.at('phase').text || status.at('state').text;
};

/** As kubectl prints a pod. */
const pod: Derive = (whole) => {
  const object = new Part(whole);
  const status = object.at('status');
  const [phase, reason] = [status.at('phase').text, status.at('reason').text];
  let said = reason || phase;
  if (status.at('conditions').list.some((one) => one.at('type').text === 'PodScheduled' && one.at('reason').text === 'SchedulingGated')) said = 'SchedulingGated';
  const begins = initializing(object);
  if (begins !== undefined) said = begins;
  if (begins === undefined || holds(status, 'Initialized')) said = running(status, said);
  if (!isDeleted(object)) return said;
  if (reason === 'NodeLost') return 'Unknown';
  return phase === 'Succeeded' || phase === 'Failed' ? said : 'Terminating';
};

const whyTerminated = (terminated: Part): string => {
  const [reason, signal] = [terminated.at('reason').text, terminated.at('signal').number];
  return reason || (signal !== 0 ? `Signal:${signal}` : `ExitCode:${terminated.at('exitCode').number}`);
};

/** What holds a pod's beginning up; undefined: its init containers are done. */
function initializing(object: Part): string | undefined {
  const all = object.at('spec', 'initContainers').list;
  const sidecars = new Set(all.filter((one) => one.at('restartPolicy').text === 'Always').map((one) => one.at('name').text));
  let done = 0;
  for (const one of object.at('status', 'initContainerStatuses').list) {
    const [terminated, waiting] = [one.at('state', 'terminated'), one.at('state', 'waiting', 'reason').text];
    const isDone = terminated.isThere ? terminated.at('exitCode').number === 0 : sidecars.has(one.at('name').text) && one.at('started').isTrue;
    if (isDone) done++;
    else if (terminated.isThere) return `Init:${whyTerminated(terminated)}`;
    else return waiting !== '' && waiting !== 'PodInitializing' ? `Init:${waiting}` : `Init:${done}/${all.length}`;
  }
  return undefined;
}

/** What its containers do: the first of them that says something. */
function running(status: Part, before: string): string {
  let [said, failure, runs] = [before, '', false];
  for (const one of [...status.at('containerStatuses').list].reverse()) {
    const [terminated, waiting] = [one.at('state', 'terminated'), one.at('state', 'waiting', 'reason').text];
    if (waiting !== '') said = waiting;
    else if (terminated.isThere) {
      said = whyTerminated(terminated);
      if (terminated.at('exitCode').number !== 0) failure = said;
    } else if (one.at('ready').isTrue && one.at('state', 'running').isThere) runs = true;
  }
  if (said !== 'Completed') return said;
  // Those that have completed must not hide what the others do.
  if (runs && holds(status, 'Ready')) return 'Running';
  return failure || (runs ? 'NotReady' : said);
}

const node: Derive = (whole) => {
  const object = new Part(whole);
  const ready = object.at('status', 'conditions').list.filter((one) => one.at('type').text === 'Ready').at(-1);
  const said = ready === undefined ? 'Unknown' : ready.at('status').text === 'True' ? 'Ready' : 'NotReady';
  return said + (object.at('spec', 'unschedulable').isTrue ? ',SchedulingDisabled' : '');
};

/** The state with which the history of a Job would begin. */
const job: Derive = (whole) => {
  const object = new Part(whole);
  const [spec, status] = [object.at('spec'), object.at('status')];
  const held = object.at('metadata', 'labels', 'kueue.x-k8s.io/queue-name').text === '' ? 'Suspended' : 'Queued';
  const uncounted = (of: string): number => status.at('uncountedTerminatedPods', of).list.length;
  const [active, failed, succeeded] = [status.at('active').number, status.at('failed').number + uncounted('failed'), status.at('succeeded').number + uncounted('succeeded')];
  const parallelism = spec.at('parallelism');
  const isLost = active > 0 ? failed > 0 && succeeded === 0 : failed > 0 && !(parallelism.isThere && parallelism.number === 0);
  if (holds(status, 'Complete')) return 'Succeeded';
  if (holds(status, 'Failed')) return 'Failed';
  if (spec.at('suspend').isTrue) return held;
  if (holds(status, 'SuccessCriteriaMet') || holds(status, 'FailureTarget') || status.at('ready').number > 0) return 'Running';
  if (isLost) return 'Retrying';
  if (holds(status, 'Suspended')) return held;
  if (active === 0 && status.at('startTime').text === '') return 'Submitted';
  return succeeded > 0 ? 'Running' : 'Pending';
};

const phase: Derive = (object) => new Part(object).at('status', 'phase').text;
const volume: Derive = (object) => (isDeleted(new Part(object)) ? 'Terminating' : phase(object));

const ways: Readonly<Record<string, Derive>> = { pods: pod, nodes: node, namespaces: phase, persistentvolumes: volume, persistentvolumeclaims: volume, 'jobs.batch': job };

/** The kinds whose states the gateway's history knows by rules of their controllers, and the mock does not. */
const ruled = new Set([
  ...['pytorchjobs', 'tfjobs', 'mpijobs', 'xgboostjobs', 'paddlejobs', 'jaxjobs'].map((plural) => `${plural}.kubeflow.org`),
  ...['trainjobs.trainer.kubeflow.org', 'rayjobs.ray.io', 'rayclusters.ray.io', 'rayservices.ray.io', 'workflows.argoproj.io', 'jobs.batch.volcano.sh', 'jobsets.jobset.x-k8s.io'],
  ...['sparkapplications.sparkoperator.k8s.io', 'taskruns.tekton.dev', 'pipelineruns.tekton.dev', 'customruns.tekton.dev', 'appwrappers.workload.codeflare.dev'],
  ...['workloads.kueue.x-k8s.io', 'leaderworkersets.leaderworkerset.x-k8s.io'],
]);

/** An object with other metadata, which says what it does as the one before said it. */
export function asBefore(object: KubeObject, metadata: KubeObject['metadata']): KubeObject {
  const { $status } = object as { readonly $status?: string };
  return Object.defineProperty({ ...object, metadata }, '$status', { value: $status });
}

/** Whether the mock can say it of a kind's objects that do not bring theirs along. */
export const derivesStatus = (id: string): boolean => !ruled.has(id);

/** An object with its `$status`: the one that it was given, else the derived one. As at the gateway it is a path, and in no answer that does not ask for it. */
export function withStatus<T extends { readonly metadata: object; readonly $status?: string }>(id: string, { $status, ...object }: T): Omit<T, '$status'> & { readonly $status: string } {
  const derive = ways[id] ?? (ruled.has(id) ? () => '' : conventional);
  return Object.defineProperty(object as Omit<T, '$status'> & { readonly $status: string }, '$status', { value: $status ?? derive(object as unknown as KubeObject) });
}

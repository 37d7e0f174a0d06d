// The lives of jobs' pods, as a source to follow, and as a list; see "History" in wire.md.

import { answerTo } from './asked.ts';
import type { PastQuery, TransitionQuery } from './history.ts';
import { historyPath, pastPage, type PastPage } from './historypath.ts';
import type { Kubecast } from './kubecast.ts';
import { isJsonObject, text, time, type JsonObject, type KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import { Sequence } from './sequence.ts';
import type { Source } from './store.ts';

/** The life of a pod of a job, as it is since its last change. */
export interface Run {
  /** Names the last change in its cluster. It has no order: the order of changes is that in which they come. */
  readonly seq: string;
  readonly namespace: string;
  /** The topmost job of which the pod is a part. */
  readonly job: { readonly resource: string; readonly name: string; readonly uid: string };
  /** Of the pod. */
  readonly name: string;
  /** Of the pod. */
  readonly uid: string;
  /** Which of the job's pods it is; empty if these have no numbers. */
  readonly index: string;
  readonly node: string;
  /** In milliseconds since the epoch, as all times; undefined where it has not happened. */
  readonly createdAt: number | undefined;
  readonly scheduledAt: number | undefined;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** Something of it was found after the fact. */
  readonly late: boolean;
  readonly restarts: number;
  /** Why it ended, or why it cannot begin. */
  readonly reason: string;
  readonly message: string;
  /** The container that decided its end. */
  readonly container: string;
  readonly exitCode: number | undefined;
  readonly signal: number | undefined;
  readonly requests: Readonly<Record<string, string>>;
  /** Those that its resource claims were given. */
  readonly devices?: readonly { readonly driver: string; readonly pool: string; readonly device: string }[];
  /** The end of the pod's own log is kept (see `pastLog`); only of `pods` of one job, and only where it is so. */
  readonly log?: boolean;
}

/** Which runs of a history. */
export interface RunQuery extends Omit<TransitionQuery, 'states' | 'uid' | 'causes'> {
  /** Only those of the job with this uid. */
  readonly job?: string | undefined;
}

const pathTo = (resource: Resource<KubeObject>, query: RunQuery, at?: string): string =>
  historyPath(resource, query, { view: 'runs', owner: query.owner, uid: query.job, limit: query.limit?.toString(), continue: at });

/**
 * Each change of runs, the newest last: what a pod has become is what the last item of its uid says.
 *
 * ```ts
 * const pods = kc.follow(runs(jobs, { namespace: 'team-a', job: uid, limit: 1000 }));
 * ```
 */
export function runs(resource: Resource<KubeObject>, query: RunQuery): Source<Run> {
  const { keep = 10_000 } = query;
  const read = (type: string, data: JsonObject): Run | undefined => (type === 'run' ? readRun(data) : undefined);
  return {
    path: pathTo(resource, query),
    sink: (changed) => new Sequence(changed, { read, keep, partial: false }),
  };
}

/** The runs of a history, those of the newest pods first; otherwise as `pastJobs`. */
export function pastRuns(kc: Kubecast, resource: Resource<KubeObject>, query: RunQuery & Pick<PastQuery, 'continue'>): Promise<PastPage<Run>> {
  return answerTo(kc, pathTo(resource, query, query.continue)).then((body) => pastPage(body, readRun));
}

export function readRun(data: JsonObject): Run {
  const job = isJsonObject(data.job) ? data.job : {};
  return {
    seq: text(data.seq),
    namespace: text(data.namespace),
    job: { resource: text(job.resource), name: text(job.name), uid: text(job.uid) },
    name: text(data.name),
    uid: text(data.uid),
    index: text(data.index),
    node: text(data.node),
    createdAt: time(data.createdAt),
    scheduledAt: time(data.scheduledAt),
    startedAt: time(data.startedAt),
    endedAt: time(data.endedAt),
    late: data.late === true,
    restarts: number(data.restarts) ?? 0,
    reason: text(data.reason),
    message: text(data.message),
    container: text(data.container),
    exitCode: number(data.exitCode),
    signal: number(data.signal),
    requests: isJsonObject(data.requests) ? (data.requests as Record<string, string>) : {},
    devices: Array.isArray(data.devices) ? (data.devices as Run['devices'] & object) : [],
    ...(data.log === true && { log: true }),
  };
}

const number = (value: unknown): number | undefined => (typeof value === 'number' ? value : undefined);

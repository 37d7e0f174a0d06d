// Queues: what they have and use, who waits in them, and when that will start; see "Queues" in wire.md.

import { answerTo, asked, statusOf, type Answer, type AskedSnapshot } from './asked.ts';
import { none } from './collection.ts';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import { Latest } from './latest.ts';
import { listOf, objectOf, text, time, type JsonObject } from './object.ts';
import { named } from './resource.ts';
import type { Freshness } from './state.ts';
import type { Source } from './store.ts';

/** What a queue has of one resource of one flavor. Quantities are as Kubernetes writes them (`40`, `1500m`, `64Gi`); null: not known, or not for the caller. */
export interface QueueResource {
  readonly flavor: string;
  readonly resource: string;
  /** What is its own. */
  readonly quota: string | null;
  /** What its jobs were given. */
  readonly used: string | null;
  /** How much of that is others'. */
  readonly borrowed: string | null;
}

/** A queue, as its own object says it. */
export interface Queue {
  readonly name: string;
  /** Empty of a queue of the whole cluster. */
  readonly namespace: string;
  /** `LocalQueue` and `ClusterQueue` are Kueue's, `Queue` is Volcano's. */
  readonly kind: string;
  /** Of a LocalQueue, the ClusterQueue that it is a part of. */
  readonly clusterQueue: string;
  /** From whom it borrows, and to whom it lends; empty: from nobody, or not known. */
  readonly cohort: string;
  /** It lets nothing in. */
  readonly stopped: boolean;
  readonly resources: readonly QueueResource[];
  readonly waiting: number;
  readonly running: number;
}

/** When a job will start, as jobs like it have started of late: with `confidence` (of 1) between the two, in milliseconds since the epoch. */
export interface ExpectedStart {
  readonly from: number;
  readonly to: number;
  readonly confidence: number;
}

/** A job that waits in a queue. */
export interface WaitingJob {
  readonly hidden: false;
  /** Its place in its own queue, from 1; null: nobody says. */
  readonly position: number | null;
  /** Its place in the queue of the whole cluster. */
  readonly clusterPosition: number | null;
  readonly namespace: string;
  readonly queue: string;
  /** Its kind, such as `jobs.batch`. */
  readonly resource: string;
  readonly name: string;
  readonly uid: string;
  /** Empty: not known. */
  readonly owner: string;
  /** Since when it waits, in milliseconds since the epoch. */
  readonly since: number | undefined;
  /** Of all its pods together. */
  readonly requests: Readonly<Record<string, string>>;
  /** Undefined where too little is known to say. */
  readonly starts: ExpectedStart | undefined;
}

/** Somebody else's job, of which the caller may know no more than that it waits. */
export interface HiddenJob {
  readonly hidden: true;
  readonly position: number | null;
}

/** A queue, and who waits in it. */
export interface QueueWithJobs extends Queue {
  /** In their order; as many as were asked for. */
  readonly jobs: readonly (WaitingJob | HiddenJob)[];
}

/** Where a job waits, which the history tells with it. */
export interface QueuePlace {
  readonly position: number | null;
  readonly clusterPosition: number | null;
  readonly starts: ExpectedStart | undefined;
}

/** Of which queue how much. */
export interface QueueQuery {
  readonly cluster?: string | undefined;
  /** So many of the first that wait, 100 by default, and 1,000 at most. */
  readonly limit?: number | undefined;
}

/** The queues that the caller may see. */
export interface QueuesSnapshot extends Freshness {
  readonly data: readonly Queue[];
}

/** Followed while somebody has subscribed. All of it may be passed around unbound. */
export interface Queues {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => QueuesSnapshot;
  readonly getServerSnapshot: () => QueuesSnapshot;
  readonly retry: () => void;
}

const queuesPath = (cluster: string | undefined): string => (cluster ? `/clusters/${encodeURIComponent(cluster)}/queues` : '/queues');

const sinkOf = <T>(read: (data: JsonObject) => readonly T[] | undefined) => (changed: () => void): Latest<T> => new Latest(changed, { name: 'queue', read, anew: true });

/**
 * One queue and who waits in it, told anew whenever that changes; without a namespace a queue of the whole cluster. It is one item, or none
 * while it is not known, and has `failed` (`http:404`) if there is no such queue, or the caller may not see it.
 *
 * ```ts
 * const gpu = kc.follow(queue('team-a', 'gpu'));
 * ```
 */
export function queue(namespace: string, name: string, { cluster, limit }: QueueQuery = {}): Source<QueueWithJobs> {
  named(name);
  const path = [queuesPath(cluster), ...[namespace, name].filter(Boolean).map(encodeURIComponent)].join('/');
  return {
    path: limit ? `${path}?limit=${limit}` : path,
    sink: sinkOf(readQueueWithJobs),
  };
}

const made = new WeakMap<Kubecast, Map<string, Queues>>();

/**
 * The queues that the caller may see, those of namespaces first, followed where there are any. Where the gateway knows of none, as on a cluster without
 * Kueue, it is asked once.
 */
export function queuesOf(kc: Kubecast, { cluster }: Pick<QueueQuery, 'cluster'> = {}): Queues {
  const path = queuesPath(cluster);
  const of = made.get(kc) ?? new Map<string, Queues>();
  made.set(kc, of);
  const present = of.get(path);
  if (present) return present;
  const watch = kc.follow<Queue, unknown>({ path, sink: sinkOf(readQueues) });
  const queues = make(watch, asked(kc, path, () => read(kc, path)));
  of.set(path, queues);
  return queues;
}

function make(watch: Watch<Queue>, first: Answer<readonly Queue[]>): Queues {
  let shown: { readonly told: WatchSnapshot<Queue>; readonly read: AskedSnapshot<readonly Queue[]>; readonly snapshot: QueuesSnapshot } | undefined;
  const show = (): QueuesSnapshot => {
    const told = watch.getSnapshot();
    if (told.status === 'denied') first.forget();
    const read = first.getSnapshot();
    if (shown?.told !== told || shown.read !== read) {
      const { namespaces, ...snapshot } = told;
      shown = { told, read, snapshot: told.status === 'loading' ? before(read) : snapshot };
    }
    return shown.snapshot;
  };
  return {
    subscribe: (listener) => {
      let leave: (() => void) | undefined;
      const follow = (): void => {
        if (first.getSnapshot().data?.[0]) leave ??= watch.subscribe(listener);
      };
      const end = first.subscribe(() => {
        follow();
        listener();
      });
      follow();
      return () => {
        end();
        leave?.();
      };
    },
    getSnapshot: show,
    getServerSnapshot: () => before(first.getServerSnapshot()),
    retry: () => {
      watch.retry();
      first.retry();
    },
  };
}

/** What was answered, until they are followed, or if there is nothing to follow. */
function before({ data = none, error, ...how }: AskedSnapshot<readonly Queue[]>): QueuesSnapshot {
  return { ...how, ...(data[0] && ({ status: 'stale', reason: 'catching-up' } as const)), data, asOf: undefined, error: error && { reason: 'queues', message: error.message } };
}

async function read(kc: Kubecast, path: string): Promise<readonly Queue[]> {
  try {
    const answer = await answerTo(kc, path);
    return readQueues(objectOf(answer) ?? {}) ?? none;
  } catch (error) {
    if (statusOf(error) === 404) return none;
    throw error;
  }
}

function readQueues({ items }: JsonObject): readonly Queue[] | undefined {
  return listOf(items, readQueue);
}

function readQueueWithJobs(data: JsonObject): readonly QueueWithJobs[] | undefined {
  const jobs = listOf(data.jobs, readWaiting);
  return jobs && [{ ...readQueue(data), jobs }];
}

function readQueue(data: JsonObject): Queue {
  return {
    name: text(data.name),
    namespace: text(data.namespace),
    kind: text(data.kind),
    clusterQueue: text(data.clusterQueue),
    cohort: text(data.cohort),
    stopped: data.stopped === true,
    resources: listOf(data.resources, readResource) ?? none,
    waiting: number(data.waiting) ?? 0,
    running: number(data.running) ?? 0,
  };
}

function readResource({ flavor, resource, quota, used, borrowed }: JsonObject): QueueResource {
  return { flavor: text(flavor), resource: text(resource), quota: text(quota) || null, used: text(used) || null, borrowed: text(borrowed) || null };
}

function readWaiting(data: JsonObject): WaitingJob | HiddenJob {
  if (data.hidden === true) return { hidden: true, position: number(data.position) };
  return {
    hidden: false,
    ...readPlace(data),
    namespace: text(data.namespace),
    queue: text(data.queue),
    resource: text(data.resource),
    name: text(data.name),
    uid: text(data.uid),
    owner: text(data.owner),
    since: time(data.since),
    requests: (objectOf(data.requests) ?? {}) as Record<string, string>,
  };
}

export function readPlace(data: JsonObject): QueuePlace {
  return { position: number(data.position), clusterPosition: number(data.clusterPosition), starts: readStart(data.starts) };
}

function readStart(data: unknown): ExpectedStart | undefined {
  const { from, to, confidence } = objectOf(data) ?? {};
  const begin = time(from);
  const end = time(to);
  return begin && end ? { from: begin, to: end, confidence: number(confidence) ?? 0 } : undefined;
}

const number = (value: unknown): number | null => (typeof value === 'number' ? value : null);

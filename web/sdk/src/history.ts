// The states through which jobs went, as a source to follow, and the jobs themselves, as a list; see "History" in wire.md.

import { answerTo } from './asked.ts';
import { historyPath, pastPage, type PastPage } from './historypath.ts';
import type { Kubecast } from './kubecast.ts';
import { isJsonObject, listOf, text, time, type JsonObject, type KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import { readPlace, type QueuePlace } from './queues.ts';
import { readRun, type Run } from './runs.ts';
import { Sequence } from './sequence.ts';
import type { Source } from './store.ts';

/** Why a job failed, is tried again, was ended on purpose, or waits again after it ran. */
export interface Cause {
  /** One short sentence. */
  readonly text: string;
  /** One word, as OOMKilled, Evicted or Deadline. */
  readonly reason: string;
  /** The container that decided it; empty where none did, as are pod and node. */
  readonly container: string;
  readonly exitCode: number | null;
  readonly signal: number | null;
  readonly pod: string;
  readonly node: string;
  /** How many pods ended alike; 0: no pod says it. */
  readonly pods: number;
}

/** A change of a job's state, as it was recorded. */
export interface Transition {
  /** Names the transition in its cluster and kind. It has no order: the order of transitions is that in which they come. */
  readonly seq: string;
  /** Of those that the gateway serves, the one in which the job is. */
  readonly cluster?: string;
  readonly namespace: string;
  /** Which namespace of that name; null where that is not known. */
  readonly namespaceUID?: string | null;
  readonly name: string;
  readonly uid: string;
  /** Undefined of the first. */
  readonly from: string | undefined;
  readonly to: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** Found after the fact: there may have been states in between. */
  readonly late: boolean;
  readonly attempt: number;
  readonly reason: string;
  readonly message: string;
  readonly owner: string;
  /** Undefined where it is not known, or the state has none. */
  readonly cause?: Cause | undefined;
}

/** Which transitions of a history. */
export interface TransitionQuery {
  readonly namespace?: string | undefined;
  /** All objects that ever had this name. */
  readonly name?: string | undefined;
  readonly cluster?: string | undefined;
  /** Only those to one of these states. */
  readonly states?: readonly string[] | undefined;
  /** Whose jobs; `me`: the caller's. */
  readonly owner?: string | undefined;
  /** Only those of the job with this uid. */
  readonly uid?: string | undefined;
  /** Only those with one of these reasons of a {@link Cause} (`OOMKilled`). */
  readonly causes?: readonly string[] | undefined;
  /** Only those of jobs whose name contains it, in whatever case. */
  readonly search?: string | undefined;
  /** So many of the newest come first, 100 by default, and 1,000 at most. */
  readonly limit?: number | undefined;
  /** How many of the newest are kept, 10,000 by default. It belongs to whoever asks first. */
  readonly keep?: number | undefined;
}

/**
 * ```ts
 * const past = kc.follow(transitions(jobs, { namespace: 'team-a', name: 'train' }));
 * ```
 */
export function transitions(resource: Resource<KubeObject>, query: TransitionQuery): Source<Transition> {
  const { states, owner, uid, causes, search, limit, keep = 10_000 } = query;
  const read = (type: string, data: JsonObject): Transition | undefined => (type === 'transition' ? readTransition(data) : undefined);
  return {
    path: historyPath(resource, query, { view: 'transitions', state: states?.join(), owner, uid, cause: causes?.join(), search, limit: limit?.toString() }),
    sink: (changed) => new Sequence(changed, { read, keep, partial: false }),
  };
}

export function readTransition(data: JsonObject): Transition {
  return {
    seq: text(data.seq),
    cluster: text(data.cluster),
    namespace: text(data.namespace),
    name: text(data.name),
    uid: text(data.uid),
    from: text(data.from) || undefined,
    to: text(data.to),
    at: Date.parse(text(data.at)),
    late: data.late === true,
    attempt: typeof data.attempt === 'number' ? data.attempt : 0,
    reason: text(data.reason),
    message: text(data.message),
    owner: text(data.owner),
    cause: readCause(data.cause),
  };
}

const readCause = (data: unknown): Cause | undefined => (isJsonObject(data) ? (data as unknown as Cause) : undefined);

/** A time that went by, in milliseconds, and since when it goes on; undefined: it is over. */
export interface Elapsed {
  readonly over: number;
  readonly since: number | undefined;
}

/** A job as the history has it, whether it is still there or not. */
export interface PastJob {
  /** Of those that the gateway serves, the one in which it is. */
  readonly cluster?: string;
  readonly namespace: string;
  /** Which namespace of that name; null where that is not known. */
  readonly namespaceUID?: string | null;
  readonly name: string;
  readonly uid: string;
  readonly owner: string;
  readonly queue: string;
  /** Where it stands in that queue, and when it will start; undefined of a job that waits in none, or where that is not known. */
  readonly place?: QueuePlace | undefined;
  readonly state: string;
  /** When it came to that, in milliseconds since the epoch, as all times. */
  readonly since: number;
  readonly reason: string;
  readonly message: string;
  readonly attempt: number;
  readonly createdAt: number;
  readonly startedAt: number | undefined;
  readonly endedAt: number | undefined;
  /** When it was removed from its cluster. */
  readonly deletedAt?: number | undefined;
  /** By state, how long it has been in it, in seconds. */
  readonly durations: Readonly<Record<string, number>>;
  /** How long it waited, until it first ran or, if it never did, until it ended; undefined where that is not known, as of one that was found late. */
  readonly waited?: Elapsed | undefined;
  /** How long it was Running, all its runs together; undefined: it never was. */
  readonly ran?: Elapsed | undefined;
  /** Why it waits or waited, the newest last. */
  readonly reasons: readonly {
    readonly at: number;
    readonly reason: string;
    readonly message: string;
    /** The same in one short sentence; empty of an older gateway. */
    readonly text?: string;
  }[];
  /** Why it is in its state; undefined where it is not known, or the state has none. */
  readonly cause?: Cause | undefined;
  /** How much of it is done; undefined where that is not known. */
  readonly progress: { readonly done: number; readonly of: number } | undefined;
  /** The topmost job of which it is a part; undefined if there is none that the caller may see. */
  readonly parent: { readonly resource: string; readonly name: string; readonly uid: string } | undefined;
  /** How many jobs are parts of it that the caller may see. */
  readonly children: number;
  /** The end of its log is kept; see {@link pastLog}. */
  readonly log?: boolean;
  /** What it was told to do is kept; see {@link pastSpec}. */
  readonly spec?: boolean;
  /** What all its pods together request, as specified: `{"cpu":"8"}`; empty of an older gateway. */
  readonly requests?: Readonly<Record<string, string>>;
  /** What its pods requested, times how long they held it, so far; memory in GiB · h. Null where that is not known, as the next two. */
  readonly hours?: { readonly cpu: number; readonly memory: number; readonly gpu: number } | null;
  /** Pods that ended badly, and those of them that were preempted for others. */
  readonly podFailures?: number | null;
  readonly preemptions?: number | null;
  /** All of its pods. */
  readonly podCount?: number | null;
  /** The newest 100 of these, and behind them those older ones of which a log is kept, the newest first; there if jobs are asked for by `uid`, and {@link pastRuns} has all of them. */
  readonly pods?: readonly Run[] | undefined;
}

/** Which jobs of a history. */
export interface PastQuery extends Pick<TransitionQuery, 'namespace' | 'name' | 'cluster' | 'states' | 'owner' | 'search' | 'limit'> {
  /** Only the one with this uid, which then has its `pods`; up to 100 by commas, without these. */
  readonly uid?: string | undefined;
  /** Only those whose {@link Cause} has one of these reasons (`OOMKilled`). */
  readonly causes?: readonly string[] | undefined;
  /** Only those that came to their state since then: RFC 3339, or so long ago (`24h`). */
  readonly since?: string | undefined;
  /** Only those that came to it before then. */
  readonly until?: string | undefined;
  /** Only those of these queues. */
  readonly queues?: readonly string[] | undefined;
  /** Only parts of the job with this uid. */
  readonly parent?: string | undefined;
  /** Where an answer to the same question ended. */
  readonly continue?: string | undefined;
}

/** The jobs of a history, the newest first; `more`: not all of them, and `continue` is where the rest begins. A `search` may have found none so far, and has `more` then. Rejects with an {@link AskedError} if the gateway does not answer that; its status is 404 if no history of these is kept. */
export function pastJobs(kc: Kubecast, resource: Resource<KubeObject>, query: PastQuery, { signal }: Pick<RequestInit, 'signal'> = {}): Promise<PastPage<PastJob>> {
  const { states, owner, uid, causes, search, limit, since, until, queues, parent, continue: at } = query;
  const asked = { state: states?.join(), owner, queue: queues?.join(), uid, cause: causes?.join(), parent, search, since, until, limit: limit?.toString(), continue: at };
  return answerTo(kc, historyPath(resource, query, asked), signal ? { signal } : {}).then((body) => pastPage(body, readJob));
}

const readElapsed = (data: unknown): Elapsed | undefined =>
  isJsonObject(data) && typeof data.seconds === 'number' ? { over: data.seconds * 1_000, since: time(data.since) } : undefined;

function readJob(data: JsonObject): PastJob {
  const { queue, reasons, progress, parent, children, pods } = data;
  return {
    cluster: text(data.cluster),
    namespace: text(data.namespace),
    name: text(data.name),
    uid: text(data.uid),
    owner: text(data.owner),
    queue: isJsonObject(queue) ? text(queue.name) : text(queue),
    place: isJsonObject(queue) ? readPlace(queue) : undefined,
    state: text(data.state),
    since: Date.parse(text(data.since)),
    reason: text(data.reason),
    message: text(data.message),
    attempt: typeof data.attempt === 'number' ? data.attempt : 0,
    createdAt: Date.parse(text(data.createdAt)),
    startedAt: time(data.startedAt),
    endedAt: time(data.endedAt),
    deletedAt: time(data.deletedAt),
    durations: isJsonObject(data.durations) ? (data.durations as Record<string, number>) : {},
    waited: readElapsed(data.waited),
    ran: readElapsed(data.ran),
    reasons: listOf(reasons, (one) => ({ at: Date.parse(text(one.at)), reason: text(one.reason), message: text(one.message), text: text(one.text) })) ?? [],
    cause: readCause(data.cause),
    progress: isJsonObject(progress) && typeof progress.done === 'number' && typeof progress.of === 'number' ? { done: progress.done, of: progress.of } : undefined,
    parent: isJsonObject(parent) ? { resource: text(parent.resource), name: text(parent.name), uid: text(parent.uid) } : undefined,
    children: typeof children === 'number' ? children : 0,
    log: data.log === true,
    spec: data.spec === true,
    requests: isJsonObject(data.requests) ? (data.requests as Record<string, string>) : {},
    hours: isJsonObject(data.hours) ? { cpu: Number(data.hours.cpu), memory: Number(data.hours.memory), gpu: Number(data.hours.gpu) } : null,
    podFailures: typeof data.podFailures === 'number' ? data.podFailures : null,
    preemptions: typeof data.preemptions === 'number' ? data.preemptions : null,
    podCount: typeof data.podCount === 'number' ? data.podCount : null,
    pods: listOf(pods, readRun),
  };
}

// For Svelte: a watch is a store, and its objects are there while somebody has subscribed, as `$running` does.

import { getContext, setContext } from 'svelte';
import { readable, type Readable } from 'svelte/store';
import { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
import type { Asked } from './asked.ts';
import { counts, type Count, type CountQuery } from './counts.ts';
import { transitions as transitionsSource, type PastQuery, type Transition, type TransitionQuery } from './history.ts';
import { infiniteListOf, type InfiniteList, type InfiniteListQuery } from './infinitelist.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import { logs as logsSource, type LogEntry, type LogQuery } from './logs.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import { pastOf, type Past } from './past.ts';
import type { Columns, Only } from './paths.ts';
import { queue as queueSource, queuesOf, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import { named, type QueryOf, type Resource } from './resource.ts';
import { holding, one, shown, type Followable, type One, type Shown } from './shown.ts';
import { idleAsked, idleInbox, idleList, idlePast, idleWatch, isSkip, type Skip, type Skippable } from './skip.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const key = Symbol('kubecast');

/** Gives the components below this one a gateway. */
export const setKubecast = (client: Kubecast): Kubecast => setContext(key, client);

/** The page's, as it was provided above. */
export function getKubecast(): Kubecast {
  const client = getContext<Kubecast | undefined>(key);
  if (!client) throw new Error('no component above this one has called setKubecast');
  return client;
}

/** On a server nothing is followed. */
const isServer = !('document' in globalThis);

function storeOf<F extends Pick<Followable, 'subscribe'>, S>(from: F, look: (from: F) => S): Readable<S> {
  return readable(look(from), (set) => {
    if (isServer) return;
    const leave = from.subscribe(() => set(look(from)));
    set(look(from));
    return leave;
  });
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```svelte
 * const running = $derived(watch(jobs, { namespace: team }));   // $running.data, $running.status
 * ```
 *
 * Outside of a component's beginning, where there is no context, the gateway has to be given.
 */
export function watch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
  kc?: Kubecast,
): Readable<Shown<Watch<Only<T, F>>>>;
/** The same; with `'skip'` nothing is watched, and the status is `idle`. */
export function watch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> | 'skip' | undefined,
  kc?: Kubecast,
): Readable<Skippable<Shown<Watch<Only<T, F>>>>>;
export function watch<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F> | 'skip', kc: Kubecast = getKubecast()): Readable<Shown<Watch<Only<T, F>>>> {
  return storeOf<Watch<Only<T, F>>, Shown<Watch<Only<T, F>>>>(query === 'skip' ? idleWatch : kc.watch<T, F>(resource, query), shown);
}

/** One object: `object(jobs, { namespace, name })`. Its `data` is `undefined` while it is not known, and `live` without one if there is none. */
export function object<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
  kc?: Kubecast,
): Readable<One<Shown<Watch<Only<T, F>>>>>;
/** The same; with `'skip'`, or undefined, nothing is watched, and the status is `idle`. */
export function object<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: (QueryOf<T, F> & { readonly name: string }) | Skip,
  kc?: Kubecast,
): Readable<Skippable<One<Shown<Watch<Only<T, F>>>>>>;
export function object<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: (QueryOf<T, F> & { readonly name: string }) | Skip,
  kc: Kubecast = getKubecast(),
): Readable<One<Shown<Watch<Only<T, F>>>>> {
  const look = (from: Watch<Only<T, F>>): One<Shown<Watch<Only<T, F>>>> => one(shown(from));
  if (isSkip(query)) return storeOf(idleWatch, look);
  named(query.name);
  return storeOf(kc.watch<T, F>(resource, query), look);
}

/** For what is not made of objects, or only of some: `follow(transitions(jobs, { namespace }))`. */
export function follow<T, More>(source: Source<T, More>, kc?: Kubecast): Readable<Shown<Watch<T, More>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function follow<T, More>(source: Source<T, More> | Skip, kc?: Kubecast): Readable<Skippable<Shown<Watch<T, More>>>>;
export function follow<T, More>(source: Source<T, More> | Skip, kc: Kubecast = getKubecast()): Readable<Shown<Watch<T, More>>> {
  return storeOf(followedBy(kc, source), shown);
}

function followedBy<T, More>(kc: Kubecast, source: Source<T, More> | Skip): Watch<T, More> {
  return isSkip(source) ? (idleWatch as Watch<never> as Watch<T, More>) : kc.follow(source);
}

/** How many objects there are of each value: `count(pods, ['status.phase'])`, or by two paths. */
export function count<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: CountQuery<T>,
  kc?: Kubecast,
): Readable<Shown<Watch<Count>>>;
/** The same; with `'skip'` nothing is counted, and the status is `idle`. */
export function count<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query: CountQuery<T> | 'skip' | undefined,
  kc?: Kubecast,
): Readable<Skippable<Shown<Watch<Count>>>>;
export function count<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: CountQuery<T> | 'skip',
  kc: Kubecast = getKubecast(),
): Readable<Shown<Watch<Count>>> {
  return storeOf(followedBy(kc, query === 'skip' ? query : counts<T, B>(resource, by, query)), shown);
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `stale` (`catching-up`).
 *
 * ```svelte
 * const newest = livePage(jobs);
 * // with 'skip', or undefined, nothing is followed, and the status is idle
 * const rows = $derived(newest({ sort: ['-metadata.creationTimestamp'], limit: 50, offset }));   // $rows.data, $rows.total
 * ```
 */
export function livePage<T extends KubeObject>(resource: Resource<T>, kc: Kubecast = getKubecast()) {
  const look = holding();
  function at<const F extends readonly string[] = readonly string[]>(query: PageQuery<T, F>): Readable<Shown<Watch<Only<T, F>, PagePlace>>>;
  function at<const F extends readonly string[] = readonly string[]>(query: PageQuery<T, F> | Skip): Readable<Skippable<Shown<Watch<Only<T, F>, PagePlace>>>>;
  function at<const F extends readonly string[]>(query: PageQuery<T, F> | Skip): Readable<Shown<Watch<Only<T, F>, PagePlace>>> {
    return storeOf(followedBy(kc, isSkip(query) ? query : page<T, F>(resource, query)), look);
  }
  return at;
}

/**
 * A sorted, searched list that grows page by page, all of which stays live, up to 2,000 rows: `fetchNextPage`, `hasNextPage`, `isFetchingNextPage`. When something
 * else is asked for, the rows before stay until the first page of that is complete, as `stale` (`catching-up`).
 *
 * ```svelte
 * const newest = infiniteList(jobs);
 * const rows = $derived(newest({ sort: ['-metadata.creationTimestamp'], limit: 50, search }));   // $rows.data, $rows.fetchNextPage()
 * ```
 */
export function infiniteList<T extends KubeObject>(resource: Resource<T>, kc: Kubecast = getKubecast()) {
  const look = holding();
  function at<const F extends readonly string[] = readonly string[]>(query: InfiniteListQuery<T, F>): Readable<Shown<InfiniteList<Only<T, F>>>>;
  function at<const F extends readonly string[] = readonly string[]>(query: InfiniteListQuery<T, F> | Skip): Readable<Skippable<Shown<InfiniteList<Only<T, F>>>>>;
  function at<const F extends readonly string[]>(query: InfiniteListQuery<T, F> | Skip): Readable<Shown<InfiniteList<Only<T, F>>>> {
    return storeOf<InfiniteList<Only<T, F>>, Shown<InfiniteList<Only<T, F>>>>(isSkip(query) ? idleList : infiniteListOf<T, F>(kc, resource, query), look);
  }
  return at;
}

/** What the containers of a pod, or of an object's pods, write. */
export function logs(resource: Resource<KubeObject>, query: LogQuery, kc?: Kubecast): Readable<Shown<Watch<LogEntry>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function logs(resource: Resource<KubeObject>, query: LogQuery | Skip, kc?: Kubecast): Readable<Skippable<Shown<Watch<LogEntry>>>>;
export function logs(resource: Resource<KubeObject>, query: LogQuery | Skip, kc: Kubecast = getKubecast()): Readable<Shown<Watch<LogEntry>>> {
  return storeOf(followedBy(kc, isSkip(query) ? query : logsSource(resource, query)), shown);
}

/** The jobs of a history, past ones too, page by page (`fetchNextPage`), and the states through which they went: `history(jobs, { owner: 'me' })`. */
export function history(resource: Resource<KubeObject>, query: PastQuery, kc?: Kubecast): Readable<Shown<Past>>;
/** The same; with `'skip'`, or undefined, nothing is asked for, and the status is `idle`. */
export function history(resource: Resource<KubeObject>, query: PastQuery | Skip, kc?: Kubecast): Readable<Skippable<Shown<Past>>>;
export function history(resource: Resource<KubeObject>, query: PastQuery | Skip, kc: Kubecast = getKubecast()): Readable<Shown<Past>> {
  return storeOf(isSkip(query) ? idlePast : pastOf(kc, resource, query), shown);
}

/** The states through which jobs went, the newest 100 of them and what comes, the oldest first: `transitions(jobs, { namespace, name })`. */
export function transitions(resource: Resource<KubeObject>, query: TransitionQuery, kc?: Kubecast): Readable<Shown<Watch<Transition>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function transitions(resource: Resource<KubeObject>, query: TransitionQuery | Skip, kc?: Kubecast): Readable<Skippable<Shown<Watch<Transition>>>>;
export function transitions(resource: Resource<KubeObject>, query: TransitionQuery | Skip, kc: Kubecast = getKubecast()): Readable<Shown<Watch<Transition>>> {
  return storeOf(followedBy(kc, isSkip(query) ? query : transitionsSource(resource, query)), shown);
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function me(kinds?: readonly string[], kc?: Kubecast): Readable<Shown<Asked<Me>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function me(kinds: readonly string[] | 'skip' | undefined, kc?: Kubecast): Readable<Skippable<Shown<Asked<Me>>>>;
export function me(kinds?: readonly string[] | 'skip', kc: Kubecast = getKubecast()): Readable<Shown<Asked<Me>>> {
  return storeOf<Asked<Me>, Shown<Asked<Me>>>(kinds === 'skip' ? idleAsked : meOf(kc, kinds), shown);
}

/** Whether the caller may watch, or get, or list that: `access(pods, { namespace, subresource: 'log', verb: 'get' })`. */
export function access(resource: Resource<KubeObject>, query?: AccessQuery, kc?: Kubecast): Readable<Shown<Asked<Access>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function access(resource: Resource<KubeObject>, query: AccessQuery | 'skip' | undefined, kc?: Kubecast): Readable<Skippable<Shown<Asked<Access>>>>;
export function access(resource: Resource<KubeObject>, query?: AccessQuery | 'skip', kc: Kubecast = getKubecast()): Readable<Shown<Asked<Access>>> {
  return storeOf<Asked<Access>, Shown<Asked<Access>>>(query === 'skip' ? idleAsked : accessOf(kc, resource, query), shown);
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function notifications(kc?: Kubecast): Readable<Shown<Inbox>>;
/** The same; with `'skip'` nothing is followed, and the status is `idle`. */
export function notifications(query: Skip, kc?: Kubecast): Readable<Skippable<Shown<Inbox>>>;
export function notifications(first?: Kubecast | Skip, second?: Kubecast): Readable<Shown<Inbox>> {
  const inbox = inboxOf((isSkip(first) ? second : first) ?? getKubecast());
  return storeOf<Inbox, Shown<Inbox>>(first === 'skip' ? { ...inbox, ...(idleInbox as Inbox) } : inbox, shown);
}

/** One queue, and who waits in it: `queue('team-a', 'gpu')`; with `''` for a namespace one of the whole cluster. Its `data` is `undefined` while it is not known. */
export function queue(namespace: string, name: string, query?: QueueQuery, kc?: Kubecast): Readable<One<Shown<Watch<QueueWithJobs>>>>;
/** The same; with `'skip'`, or while the namespace or the name is undefined, nothing is followed, and the status is `idle`. */
export function queue(namespace: string | undefined, name: string | undefined, query?: QueueQuery | 'skip', kc?: Kubecast): Readable<Skippable<One<Shown<Watch<QueueWithJobs>>>>>;
export function queue(namespace?: string, name?: string, query?: QueueQuery | 'skip', kc: Kubecast = getKubecast()): Readable<One<Shown<Watch<QueueWithJobs>>>> {
  const source = query === 'skip' || namespace === undefined || name === undefined ? 'skip' : queueSource(namespace, name, query);
  return storeOf(followedBy(kc, source), (from) => one(shown(from)));
}

/** The queues that the caller may see; none where the cluster has none. */
export function queues(query?: Pick<QueueQuery, 'cluster'>, kc?: Kubecast): Readable<Shown<Queues>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function queues(query: Pick<QueueQuery, 'cluster'> | 'skip' | undefined, kc?: Kubecast): Readable<Skippable<Shown<Queues>>>;
export function queues(query?: Pick<QueueQuery, 'cluster'> | 'skip', kc: Kubecast = getKubecast()): Readable<Shown<Queues>> {
  return storeOf<Queues, Shown<Queues>>(query === 'skip' ? idleWatch : queuesOf(kc, query), shown);
}

/** The state of the one connection; undefined while nothing is watched. */
export function connection({ connection: from }: Kubecast = getKubecast()): Readable<ConnectionState | undefined> {
  return storeOf(from, () => from.getSnapshot());
}

/** @deprecated It is {@link follow}. */
export const followed = follow;
/** @deprecated It is {@link count}. */
export const counted = count;
/** @deprecated It is {@link logs}. */
export const logged = logs;

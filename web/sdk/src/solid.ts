// For Solid: a watch is an accessor, and its objects are there while its owner is.

import { createContext, createEffect, createMemo, createSignal, on, onCleanup, useContext, type Accessor } from 'solid-js';
import { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
import type { Asked } from './asked.ts';
import { counts, type Count, type CountQuery } from './counts.ts';
import { transitions, type PastQuery, type Transition, type TransitionQuery } from './history.ts';
import { infiniteListOf, type InfiniteList, type InfiniteListQuery } from './infinitelist.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import { logs, type LogEntry, type LogQuery } from './logs.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import { pastOf, type Past } from './past.ts';
import type { Columns, Only } from './paths.ts';
import { queue, queuesOf, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import { named, type QueryOf, type Resource } from './resource.ts';
import { holding, one, shown, type Followable, type One, type Shown } from './shown.ts';
import { idleAsked, idleInbox, idleList, idlePast, idleWatch, isSkip, type Skip, type Skippable } from './skip.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

/** Gives the components below it a gateway: `<KubecastContext.Provider value={createKubecast()}>`. */
export const KubecastContext = createContext<Kubecast>();

/** The page's, as it was provided above. */
export function useKubecast(): Kubecast {
  const client = useContext(KubecastContext);
  if (!client) throw new Error('there is no KubecastContext.Provider above this component');
  return client;
}

/** Shows what `look` finds, now and whenever it has changed. On a server effects do not run, so nothing is followed there. */
function follow<F extends Pick<Followable, 'subscribe'>, S>(of: Accessor<F>, look: (from: F) => S): Accessor<S> {
  const [live, set] = createSignal(look(of()));
  createEffect(
    on(of, (from) => {
      const show = (): void => void set(() => look(from));
      onCleanup(from.subscribe(show));
      show();
    }),
  );
  return live;
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```tsx
 * const running = createWatch(jobs, () => ({ namespace: props.team }));   // running().data, running().status
 * ```
 */
export function createWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: Accessor<QueryOf<T, F> | undefined>,
): Accessor<Shown<Watch<Only<T, F>>>>;
/** The same; with `'skip'` nothing is watched, and the status is `idle`. */
export function createWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<QueryOf<T, F> | 'skip' | undefined>,
): Accessor<Skippable<Shown<Watch<Only<T, F>>>>>;
export function createWatch<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query?: Accessor<QueryOf<T, F> | 'skip' | undefined>): Accessor<Shown<Watch<Only<T, F>>>> {
  const watch = watchOf<T, F>(resource);
  return follow(createMemo(() => watch(query?.())), shown);
}

function watchOf<T extends KubeObject, F extends readonly string[]>(resource: Resource<T>) {
  const kc = useKubecast();
  return (query: QueryOf<T, F> | 'skip' | undefined): Watch<Only<T, F>> => (query === 'skip' ? idleWatch : kc.watch<T, F>(resource, query));
}

/** One object: `createObject(jobs, () => ({ namespace, name }))`. Its `data` is `undefined` while it is not known, and `live` without one if there is none. */
export function createObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<QueryOf<T, F> & { readonly name: string }>,
): Accessor<One<Shown<Watch<Only<T, F>>>>>;
/** The same; with `'skip'`, or undefined, nothing is watched, and the status is `idle`. */
export function createObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<(QueryOf<T, F> & { readonly name: string }) | Skip>,
): Accessor<Skippable<One<Shown<Watch<Only<T, F>>>>>>;
export function createObject<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: Accessor<(QueryOf<T, F> & { readonly name: string }) | Skip>,
): Accessor<One<Shown<Watch<Only<T, F>>>>> {
  const watch = watchOf<T, F>(resource);
  const of = (query: (QueryOf<T, F> & { readonly name: string }) | Skip): Watch<Only<T, F>> => {
    if (isSkip(query)) return idleWatch;
    named(query.name);
    return watch(query);
  };
  return follow(
    createMemo(() => of(query())),
    (from) => one(shown(from)),
  );
}

/** For what is not made of objects, or only of some: `createFollow(() => transitions(jobs, { namespace }))`. */
export function createFollow<T, More>(source: Accessor<Source<T, More>>): Accessor<Shown<Watch<T, More>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function createFollow<T, More>(source: Accessor<Source<T, More> | Skip>): Accessor<Skippable<Shown<Watch<T, More>>>>;
export function createFollow<T, More>(source: Accessor<Source<T, More> | Skip>): Accessor<Shown<Watch<T, More>>> {
  const followed = followedBy<T, More>();
  return follow(
    createMemo(() => followed(source())),
    shown,
  );
}

function followedBy<T, More>() {
  const kc = useKubecast();
  return (source: Source<T, More> | Skip): Watch<T, More> => (isSkip(source) ? (idleWatch as Watch<never> as Watch<T, More>) : kc.follow(source));
}

/** How many objects there are of each value: `createCount(pods, ['status.phase'])`, or by two paths. */
export function createCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: Accessor<CountQuery<T> | undefined>,
): Accessor<Shown<Watch<Count>>>;
/** The same; with `'skip'` nothing is counted, and the status is `idle`. */
export function createCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query: Accessor<CountQuery<T> | 'skip' | undefined>,
): Accessor<Skippable<Shown<Watch<Count>>>>;
export function createCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: Accessor<CountQuery<T> | 'skip' | undefined>,
): Accessor<Skippable<Shown<Watch<Count>>>> {
  const of = (query: CountQuery<T> | 'skip' | undefined) => (query === 'skip' ? query : counts<T, B>(resource, by, query));
  return createFollow(() => of(query?.()));
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `stale` (`catching-up`).
 */
export function createLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<PageQuery<T, F>>,
): Accessor<Shown<Watch<Only<T, F>, PagePlace>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function createLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<PageQuery<T, F> | Skip>,
): Accessor<Skippable<Shown<Watch<Only<T, F>, PagePlace>>>>;
export function createLivePage<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query: Accessor<PageQuery<T, F> | Skip>): Accessor<Shown<Watch<Only<T, F>, PagePlace>>> {
  const followed = followedBy<Only<T, F>, PagePlace>();
  const of = (query: PageQuery<T, F> | Skip) => (isSkip(query) ? query : page<T, F>(resource, query));
  return follow(
    createMemo(() => followed(of(query()))),
    holding(),
  );
}

/**
 * A sorted, searched list that grows page by page, all of which stays live, up to 2,000 rows: `fetchNextPage`, `hasNextPage`, `isFetchingNextPage`. When something
 * else is asked for, the rows before stay until the first page of that is complete, as `stale` (`catching-up`).
 */
export function createInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<InfiniteListQuery<T, F>>,
): Accessor<Shown<InfiniteList<Only<T, F>>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function createInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<InfiniteListQuery<T, F> | Skip>,
): Accessor<Skippable<Shown<InfiniteList<Only<T, F>>>>>;
export function createInfiniteList<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query: Accessor<InfiniteListQuery<T, F> | Skip>): Accessor<Shown<InfiniteList<Only<T, F>>>> {
  const kc = useKubecast();
  const of = (query: InfiniteListQuery<T, F> | Skip): InfiniteList<Only<T, F>> => (isSkip(query) ? idleList : infiniteListOf<T, F>(kc, resource, query));
  return follow(
    createMemo(() => of(query())),
    holding(),
  );
}

/** What the containers of a pod, or of an object's pods, write. */
export function createLogs(resource: Resource<KubeObject>, query: Accessor<LogQuery>): Accessor<Shown<Watch<LogEntry>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function createLogs(resource: Resource<KubeObject>, query: Accessor<LogQuery | Skip>): Accessor<Skippable<Shown<Watch<LogEntry>>>>;
export function createLogs(resource: Resource<KubeObject>, query: Accessor<LogQuery | Skip>): Accessor<Skippable<Shown<Watch<LogEntry>>>> {
  const of = (query: LogQuery | Skip) => (isSkip(query) ? query : logs(resource, query));
  return createFollow(() => of(query()));
}

/** The jobs of a history, past ones too, page by page (`fetchNextPage`), and the states through which they went: `createHistory(jobs, () => ({ owner: 'me' }))`. */
export function createHistory(resource: Resource<KubeObject>, query: Accessor<PastQuery>): Accessor<Shown<Past>>;
/** The same; with `'skip'`, or undefined, nothing is asked for, and the status is `idle`. */
export function createHistory(resource: Resource<KubeObject>, query: Accessor<PastQuery | Skip>): Accessor<Skippable<Shown<Past>>>;
export function createHistory(resource: Resource<KubeObject>, query: Accessor<PastQuery | Skip>): Accessor<Shown<Past>> {
  const kc = useKubecast();
  const of = (query: PastQuery | Skip) => (isSkip(query) ? idlePast : pastOf(kc, resource, query));
  return follow(
    createMemo(() => of(query())),
    shown,
  );
}

/** The states through which jobs went, the newest 100 of them and what comes, the oldest first: `createTransitions(jobs, () => ({ namespace, name }))`. */
export function createTransitions(resource: Resource<KubeObject>, query: Accessor<TransitionQuery>): Accessor<Shown<Watch<Transition>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function createTransitions(resource: Resource<KubeObject>, query: Accessor<TransitionQuery | Skip>): Accessor<Skippable<Shown<Watch<Transition>>>>;
export function createTransitions(resource: Resource<KubeObject>, query: Accessor<TransitionQuery | Skip>): Accessor<Skippable<Shown<Watch<Transition>>>> {
  const of = (query: TransitionQuery | Skip) => (isSkip(query) ? query : transitions(resource, query));
  return createFollow(() => of(query()));
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function createMe(kinds?: Accessor<readonly string[] | undefined>): Accessor<Shown<Asked<Me>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function createMe(kinds: Accessor<readonly string[] | 'skip' | undefined>): Accessor<Skippable<Shown<Asked<Me>>>>;
export function createMe(kinds?: Accessor<readonly string[] | 'skip' | undefined>): Accessor<Shown<Asked<Me>>> {
  const kc = useKubecast();
  const of = (kinds: readonly string[] | 'skip' | undefined): Asked<Me> => (kinds === 'skip' ? idleAsked : meOf(kc, kinds));
  return follow(
    createMemo(() => of(kinds?.())),
    shown,
  );
}

/** Whether the caller may watch, or get, or list that: `createAccess(pods, () => ({ namespace, subresource: 'log', verb: 'get' }))`. */
export function createAccess(resource: Resource<KubeObject>, query?: Accessor<AccessQuery | undefined>): Accessor<Shown<Asked<Access>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function createAccess(resource: Resource<KubeObject>, query: Accessor<AccessQuery | 'skip' | undefined>): Accessor<Skippable<Shown<Asked<Access>>>>;
export function createAccess(resource: Resource<KubeObject>, query?: Accessor<AccessQuery | 'skip' | undefined>): Accessor<Shown<Asked<Access>>> {
  const kc = useKubecast();
  const of = (query: AccessQuery | 'skip' | undefined): Asked<Access> => (query === 'skip' ? idleAsked : accessOf(kc, resource, query));
  return follow(
    createMemo(() => of(query?.())),
    shown,
  );
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function createNotifications(): Accessor<Shown<Inbox>>;
/** The same; with `'skip'` nothing is followed, and the status is `idle`. */
export function createNotifications(query: Accessor<Skip>): Accessor<Skippable<Shown<Inbox>>>;
export function createNotifications(query?: Accessor<Skip>): Accessor<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  const idle: Inbox = { ...inbox, ...(idleInbox as Inbox) };
  return follow(
    createMemo(() => (query?.() === 'skip' ? idle : inbox)),
    shown,
  );
}

/** One queue, and who waits in it: `createQueue(() => 'team-a', () => props.queue)`; with `''` for a namespace one of the whole cluster. Its `data` is `undefined` while it is not known. */
export function createQueue(namespace: Accessor<string>, name: Accessor<string>, query?: Accessor<QueueQuery | undefined>): Accessor<One<Shown<Watch<QueueWithJobs>>>>;
/** The same; with `'skip'`, or while the namespace or the name is undefined, nothing is followed, and the status is `idle`. */
export function createQueue(
  namespace: Accessor<string | undefined>,
  name: Accessor<string | undefined>,
  query?: Accessor<QueueQuery | 'skip' | undefined>,
): Accessor<Skippable<One<Shown<Watch<QueueWithJobs>>>>>;
export function createQueue(
  namespace: Accessor<string | undefined>,
  name: Accessor<string | undefined>,
  query?: Accessor<QueueQuery | 'skip' | undefined>,
): Accessor<One<Shown<Watch<QueueWithJobs>>>> {
  const followed = followedBy<QueueWithJobs, unknown>();
  const of = (namespace?: string, name?: string, query?: QueueQuery | 'skip') => (query === 'skip' || namespace === undefined || name === undefined ? 'skip' : queue(namespace, name, query));
  return follow(
    createMemo(() => followed(of(namespace(), name(), query?.()))),
    (from) => one(shown(from)),
  );
}

/** The queues that the caller may see; none where the cluster has none. */
export function createQueues(query?: Accessor<Pick<QueueQuery, 'cluster'> | undefined>): Accessor<Shown<Queues>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function createQueues(query: Accessor<Pick<QueueQuery, 'cluster'> | 'skip' | undefined>): Accessor<Skippable<Shown<Queues>>>;
export function createQueues(query?: Accessor<Pick<QueueQuery, 'cluster'> | 'skip' | undefined>): Accessor<Shown<Queues>> {
  const kc = useKubecast();
  const of = (query: Pick<QueueQuery, 'cluster'> | 'skip' | undefined): Queues => (query === 'skip' ? idleWatch : queuesOf(kc, query));
  return follow(
    createMemo(() => of(query?.())),
    shown,
  );
}

/** The state of the one connection; undefined while nothing is watched. */
export function createConnection(): Accessor<ConnectionState | undefined> {
  const { connection } = useKubecast();
  return follow(
    () => connection,
    (from) => from.getSnapshot(),
  );
}

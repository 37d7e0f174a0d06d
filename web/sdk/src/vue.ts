// For Vue: a watch is a composable, and its objects are there while the scope is.

import { inject, shallowRef, toValue, watchPostEffect, type InjectionKey, type MaybeRefOrGetter, type Plugin, type ShallowRef } from 'vue';
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

type Live<T> = Readonly<ShallowRef<T>>;

const key: InjectionKey<Kubecast> = Symbol('kubecast');

/** Gives all components a gateway: `createApp(App).use(kubecast(createKubecast()))`. */
export const kubecast = (client: Kubecast): Plugin => ({ install: (app) => void app.provide(key, client) });

/** The page's, as it was provided above. */
export function useKubecast(): Kubecast {
  const client = inject(key, undefined);
  if (!client) throw new Error('the app does not use kubecast()');
  return client;
}

/**
 * Follows something, and what is followed changes with what `of` depends on; where that throws, nothing is, and `idle` is shown.
 * On a server nothing is: no effect after the rendering runs there.
 */
function follow<F extends Pick<Followable, 'subscribe'>, S>(of: () => F, look: (from: F) => S, idle: Pick<Followable, 'subscribe'> = idleWatch): Live<S> {
  const live = shallowRef(look(of())) as ShallowRef<S>;
  const orIdle = (): F => {
    try {
      return of();
    } catch (error) {
      live.value = look(idle as F);
      throw error;
    }
  };
  watchPostEffect((onCleanup) => {
    const from = orIdle();
    const show = (): void => void (live.value = look(from));
    onCleanup(from.subscribe(show));
    show();
  });
  return live;
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```vue
 * const running = useWatch(jobs, () => ({ namespace: props.team }));   // running.data, running.status in the template
 * ```
 */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: MaybeRefOrGetter<QueryOf<T, F> | undefined>,
): Live<Shown<Watch<Only<T, F>>>>;
/** The same; with `'skip'` nothing is watched, and the status is `idle`. */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<QueryOf<T, F> | 'skip' | undefined>,
): Live<Skippable<Shown<Watch<Only<T, F>>>>>;
export function useWatch<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query?: MaybeRefOrGetter<QueryOf<T, F> | 'skip' | undefined>,
): Live<Shown<Watch<Only<T, F>>>> {
  const watch = watchOf<T, F>(resource);
  return follow(() => watch(toValue(query)), shown);
}

function watchOf<T extends KubeObject, F extends readonly string[]>(resource: Resource<T>) {
  const kc = useKubecast();
  return (query: QueryOf<T, F> | 'skip' | undefined): Watch<Only<T, F>> => (query === 'skip' ? idleWatch : kc.watch<T, F>(resource, query));
}

/** One object: `useObject(jobs, () => ({ namespace, name }))`. Its `data` is `undefined` while it is not known, and `live` without one if there is none. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<QueryOf<T, F> & { readonly name: string }>,
): Live<One<Shown<Watch<Only<T, F>>>>>;
/** The same; with `'skip'`, or undefined, nothing is watched, and the status is `idle`. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<(QueryOf<T, F> & { readonly name: string }) | Skip>,
): Live<Skippable<One<Shown<Watch<Only<T, F>>>>>>;
export function useObject<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<(QueryOf<T, F> & { readonly name: string }) | Skip>,
): Live<One<Shown<Watch<Only<T, F>>>>> {
  const watch = watchOf<T, F>(resource);
  const of = (query: (QueryOf<T, F> & { readonly name: string }) | Skip): Watch<Only<T, F>> => {
    if (isSkip(query)) return idleWatch;
    named(query.name);
    return watch(query);
  };
  return follow(
    () => of(toValue(query)),
    (from) => one(shown(from)),
  );
}

/** For what is not made of objects, or only of some: `useFollow(() => transitions(jobs, { namespace }))`. */
export function useFollow<T, More>(source: MaybeRefOrGetter<Source<T, More>>): Live<Shown<Watch<T, More>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useFollow<T, More>(source: MaybeRefOrGetter<Source<T, More> | Skip>): Live<Skippable<Shown<Watch<T, More>>>>;
export function useFollow<T, More>(source: MaybeRefOrGetter<Source<T, More> | Skip>): Live<Shown<Watch<T, More>>> {
  const followed = followedBy<T, More>();
  return follow(() => followed(toValue(source)), shown);
}

function followedBy<T, More>() {
  const kc = useKubecast();
  return (source: Source<T, More> | Skip): Watch<T, More> => (isSkip(source) ? (idleWatch as Watch<never> as Watch<T, More>) : kc.follow(source));
}

/** How many objects there are of each value: `useCount(pods, ['status.phase'])`, or by two paths. */
export function useCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: MaybeRefOrGetter<CountQuery<T> | undefined>,
): Live<Shown<Watch<Count>>>;
/** The same; with `'skip'` nothing is counted, and the status is `idle`. */
export function useCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query: MaybeRefOrGetter<CountQuery<T> | 'skip' | undefined>,
): Live<Skippable<Shown<Watch<Count>>>>;
export function useCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: MaybeRefOrGetter<CountQuery<T> | 'skip' | undefined>,
): Live<Skippable<Shown<Watch<Count>>>> {
  const of = (query: CountQuery<T> | 'skip' | undefined) => (query === 'skip' ? query : counts<T, B>(resource, by, query));
  return useFollow(() => of(toValue(query)));
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `stale` (`catching-up`).
 */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<PageQuery<T, F>>,
): Live<Shown<Watch<Only<T, F>, PagePlace>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<PageQuery<T, F> | Skip>,
): Live<Skippable<Shown<Watch<Only<T, F>, PagePlace>>>>;
export function useLivePage<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<PageQuery<T, F> | Skip>,
): Live<Shown<Watch<Only<T, F>, PagePlace>>> {
  const followed = followedBy<Only<T, F>, PagePlace>();
  const of = (query: PageQuery<T, F> | Skip) => (isSkip(query) ? query : page<T, F>(resource, query));
  return follow(() => followed(of(toValue(query))), holding());
}

/**
 * A sorted, searched list that grows page by page, all of which stays live, up to 2,000 rows: `fetchNextPage`, `hasNextPage`, `isFetchingNextPage`. When something
 * else is asked for, the rows before stay until the first page of that is complete, as `stale` (`catching-up`).
 */
export function useInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<InfiniteListQuery<T, F>>,
): Live<Shown<InfiniteList<Only<T, F>>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<InfiniteListQuery<T, F> | Skip>,
): Live<Skippable<Shown<InfiniteList<Only<T, F>>>>>;
export function useInfiniteList<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: MaybeRefOrGetter<InfiniteListQuery<T, F> | Skip>,
): Live<Shown<InfiniteList<Only<T, F>>>> {
  const kc = useKubecast();
  const of = (query: InfiniteListQuery<T, F> | Skip): InfiniteList<Only<T, F>> => (isSkip(query) ? idleList : infiniteListOf<T, F>(kc, resource, query));
  return follow(() => of(toValue(query)), holding(), idleList);
}

/** What the containers of a pod, or of an object's pods, write. */
export function useLogs(resource: Resource<KubeObject>, query: MaybeRefOrGetter<LogQuery>): Live<Shown<Watch<LogEntry>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLogs(resource: Resource<KubeObject>, query: MaybeRefOrGetter<LogQuery | Skip>): Live<Skippable<Shown<Watch<LogEntry>>>>;
export function useLogs(resource: Resource<KubeObject>, query: MaybeRefOrGetter<LogQuery | Skip>): Live<Skippable<Shown<Watch<LogEntry>>>> {
  const of = (query: LogQuery | Skip) => (isSkip(query) ? query : logs(resource, query));
  return useFollow(() => of(toValue(query)));
}

/** The jobs of a history, past ones too, page by page (`fetchNextPage`), and the states through which they went: `useHistory(jobs, { owner: 'me' })`. */
export function useHistory(resource: Resource<KubeObject>, query: MaybeRefOrGetter<PastQuery>): Live<Shown<Past>>;
/** The same; with `'skip'`, or undefined, nothing is asked for, and the status is `idle`. */
export function useHistory(resource: Resource<KubeObject>, query: MaybeRefOrGetter<PastQuery | Skip>): Live<Skippable<Shown<Past>>>;
export function useHistory(resource: Resource<KubeObject>, query: MaybeRefOrGetter<PastQuery | Skip>): Live<Shown<Past>> {
  const kc = useKubecast();
  const of = (query: PastQuery | Skip) => (isSkip(query) ? idlePast : pastOf(kc, resource, query));
  return follow(() => of(toValue(query)), shown, idlePast);
}

/** The states through which jobs went, the newest 100 of them and what comes, the oldest first: `useTransitions(jobs, { namespace, name })`. */
export function useTransitions(resource: Resource<KubeObject>, query: MaybeRefOrGetter<TransitionQuery>): Live<Shown<Watch<Transition>>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useTransitions(resource: Resource<KubeObject>, query: MaybeRefOrGetter<TransitionQuery | Skip>): Live<Skippable<Shown<Watch<Transition>>>>;
export function useTransitions(resource: Resource<KubeObject>, query: MaybeRefOrGetter<TransitionQuery | Skip>): Live<Skippable<Shown<Watch<Transition>>>> {
  const of = (query: TransitionQuery | Skip) => (isSkip(query) ? query : transitions(resource, query));
  return useFollow(() => of(toValue(query)));
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function useMe(kinds?: MaybeRefOrGetter<readonly string[] | undefined>): Live<Shown<Asked<Me>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useMe(kinds: MaybeRefOrGetter<readonly string[] | 'skip' | undefined>): Live<Skippable<Shown<Asked<Me>>>>;
export function useMe(kinds?: MaybeRefOrGetter<readonly string[] | 'skip' | undefined>): Live<Shown<Asked<Me>>> {
  const kc = useKubecast();
  const of = (kinds: readonly string[] | 'skip' | undefined): Asked<Me> => (kinds === 'skip' ? idleAsked : meOf(kc, kinds));
  return follow(() => of(toValue(kinds)), shown, idleAsked);
}

/** Whether the caller may watch, or get, or list that: `useAccess(pods, { namespace, subresource: 'log', verb: 'get' })`. */
export function useAccess(resource: Resource<KubeObject>, query?: MaybeRefOrGetter<AccessQuery | undefined>): Live<Shown<Asked<Access>>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useAccess(resource: Resource<KubeObject>, query: MaybeRefOrGetter<AccessQuery | 'skip' | undefined>): Live<Skippable<Shown<Asked<Access>>>>;
export function useAccess(resource: Resource<KubeObject>, query?: MaybeRefOrGetter<AccessQuery | 'skip' | undefined>): Live<Shown<Asked<Access>>> {
  const kc = useKubecast();
  const of = (query: AccessQuery | 'skip' | undefined): Asked<Access> => (query === 'skip' ? idleAsked : accessOf(kc, resource, query));
  return follow(() => of(toValue(query)), shown, idleAsked);
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function useNotifications(): Live<Shown<Inbox>>;
/** The same; with `'skip'` nothing is followed, and the status is `idle`. */
export function useNotifications(query: MaybeRefOrGetter<Skip>): Live<Skippable<Shown<Inbox>>>;
export function useNotifications(query?: MaybeRefOrGetter<Skip>): Live<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  const idle: Inbox = { ...inbox, ...(idleInbox as Inbox) };
  return follow(() => (toValue(query) === 'skip' ? idle : inbox), shown);
}

/** One queue, and who waits in it: `useQueue('team-a', () => props.queue)`; with `''` for a namespace one of the whole cluster. Its `data` is `undefined` while it is not known. */
export function useQueue(namespace: MaybeRefOrGetter<string>, name: MaybeRefOrGetter<string>, query?: MaybeRefOrGetter<QueueQuery | undefined>): Live<One<Shown<Watch<QueueWithJobs>>>>;
/** The same; with `'skip'`, or while the namespace or the name is undefined, nothing is followed, and the status is `idle`. */
export function useQueue(
  namespace: MaybeRefOrGetter<string | undefined>,
  name: MaybeRefOrGetter<string | undefined>,
  query?: MaybeRefOrGetter<QueueQuery | 'skip' | undefined>,
): Live<Skippable<One<Shown<Watch<QueueWithJobs>>>>>;
export function useQueue(
  namespace: MaybeRefOrGetter<string | undefined>,
  name: MaybeRefOrGetter<string | undefined>,
  query?: MaybeRefOrGetter<QueueQuery | 'skip' | undefined>,
): Live<One<Shown<Watch<QueueWithJobs>>>> {
  const followed = followedBy<QueueWithJobs, unknown>();
  const of = (namespace?: string, name?: string, query?: QueueQuery | 'skip') => (query === 'skip' || namespace === undefined || name === undefined ? 'skip' : queue(namespace, name, query));
  return follow(
    () => followed(of(toValue(namespace), toValue(name), toValue(query))),
    (from) => one(shown(from)),
  );
}

/** The queues that the caller may see; none where the cluster has none. */
export function useQueues(query?: MaybeRefOrGetter<Pick<QueueQuery, 'cluster'> | undefined>): Live<Shown<Queues>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useQueues(query: MaybeRefOrGetter<Pick<QueueQuery, 'cluster'> | 'skip' | undefined>): Live<Skippable<Shown<Queues>>>;
export function useQueues(query?: MaybeRefOrGetter<Pick<QueueQuery, 'cluster'> | 'skip' | undefined>): Live<Shown<Queues>> {
  const kc = useKubecast();
  const of = (query: Pick<QueueQuery, 'cluster'> | 'skip' | undefined): Queues => (query === 'skip' ? idleWatch : queuesOf(kc, query));
  return follow(() => of(toValue(query)), shown);
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): Live<ConnectionState | undefined> {
  const { connection } = useKubecast();
  return follow(
    () => connection,
    (from) => from.getSnapshot(),
  );
}

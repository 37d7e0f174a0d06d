// For React: a watch is a hook, and its objects are there while the component is.

import { createContext, createElement, useCallback, useContext, useEffect, useMemo, useState, useSyncExternalStore, type FunctionComponent, type ReactNode } from 'react';
import { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
import type { Asked } from './asked.ts';
import { counts, type Count, type CountQuery } from './counts.ts';
import { transitions, type PastJob, type PastQuery, type Transition, type TransitionQuery } from './history.ts';
import { infiniteListOf, type InfiniteList, type InfiniteListQuery } from './infinitelist.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import { logs, type LogEntry, type LogQuery } from './logs.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import { pastOf, type Past } from './past.ts';
import type { Columns, Only } from './paths.ts';
import { queue, queuesOf, type Queue, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import { ready } from './ready.ts';
import { named, pathOf, type QueryOf, type Resource } from './resource.ts';
import { isServer } from './runtime.ts';
import { selector, type Selected, type Selecting } from './select.ts';
import { held, one, shown, type Followable, type Shown } from './shown.ts';
import { idleAsked, idleInbox, idleList, idlePast, idleWatch, isSkip, type Skip, type Skippable } from './skip.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const Context = createContext<Kubecast | undefined>(undefined);

/** Gives the components below it a gateway. */
export const KubecastProvider: FunctionComponent<{ readonly client: Kubecast; readonly children?: ReactNode }> = ({ client, children }) =>
  createElement(Context.Provider, { value: client }, children);

/** The page's, as it was provided above. */
export function useKubecast(): Kubecast {
  const client = useContext(Context);
  if (!client) throw new Error('there is no KubecastProvider above this component');
  return client;
}

type Options = Selecting<never, unknown>;

/** Follows something while the component is there. On a server nothing is followed. */
function useShown<F extends Followable>(from: F, { select, structuralSharing }: Options = {}): Shown<F> {
  const { subscribe, getSnapshot, getServerSnapshot } = from;
  const [last] = useState<{ shown?: object }>({});
  // A function that is written in the component is another one each time, and what it selects is compared with what was shown last.
  const [get, getOfServer] = useMemo(() => {
    const see = (of: () => object) => (select ? selector(of, { select, structuralSharing }, () => last.shown) : of);
    return [see(getSnapshot), see(getServerSnapshot)];
  }, [getSnapshot, getServerSnapshot, select, structuralSharing, last]);
  const snapshot = useSyncExternalStore(subscribe, get, getOfServer);
  useEffect(() => void (last.shown = snapshot), [last, snapshot]);
  return shown(from, snapshot);
}

/** What is selected of one object, of a list that has no other. */
function ofOne({ select, structuralSharing }: Options = {}): Options {
  const first = select as ((object: unknown) => unknown) | undefined;
  return { structuralSharing, select: first && (([object]: readonly unknown[]) => first(object)) };
}

const oneOf = (now: { readonly data: readonly unknown[] }, options?: Options): never => (options?.select ? now : one(now)) as never;

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```tsx
 * const { data, status } = useWatch(jobs, { namespace: 'team-a', where: 'status.active!=' });
 * const { data: names } = useWatch(jobs, {}, { select: (all) => all.map(({ metadata }) => metadata.name) }); // rendered anew when a name comes or goes
 * ```
 */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
  options?: Selecting<readonly Only<T, F>[], S>,
): Selected<Shown<Watch<Only<T, F>>>, S>;
/** The same; with `'skip'` nothing is watched, and the status is `idle`. */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> | 'skip' | undefined,
  options?: Selecting<readonly Only<T, F>[], S>,
): Skippable<Selected<Shown<Watch<Only<T, F>>>, S>>;
export function useWatch<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F> | 'skip', options?: Options): never {
  const kc = useKubecast();
  return useShown(query === 'skip' ? idleWatch : kc.watch<T, F>(resource, query), options) as never;
}

/**
 * As {@link useWatch}, for a component below a Suspense: it is not rendered before something complete is there. What is denied does not
 * suspend; `status` says so. On a server that has nothing of it (`dehydrate`) it throws: React sends the fallback, and the browser renders what is below it.
 */
export function useSuspenseWatch<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
  options?: Selecting<readonly Only<T, F>[], S>,
): Selected<Shown<Watch<Only<T, F>>>, S> {
  return useSuspended(useKubecast().watch<T, F>(resource, query), options) as never;
}

/** The same for one object: `useSuspenseObject(jobs, { namespace, name }).data` is `undefined` only if there is none, or it is denied. */
export function useSuspenseObject<T extends KubeObject, const F extends readonly string[] = readonly string[], S = Only<T, F> | undefined>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
  options?: Selecting<Only<T, F> | undefined, S>,
): Selected<Shown<Watch<Only<T, F>>>, S> {
  named(query.name);
  return oneOf(useSuspended(useKubecast().watch<T, F>(resource, query), ofOne(options)), options);
}

/** The same for what is not made of objects, or only of some: `useSuspenseFollow(page(jobs, { limit: 50 }))`. */
export function useSuspenseFollow<T, More, S = readonly T[]>(source: Source<T, More>, options?: Selecting<readonly T[], S>): Selected<Shown<Watch<T, More>>, S> {
  return useSuspended(useKubecast().follow(source), options) as never;
}

/** As {@link useMe}, below a Suspense. What is denied or has failed does not suspend; `status` says so. */
export function useSuspenseMe<S = Me | undefined>(kinds?: readonly string[], options?: Selecting<Me | undefined, S>): Selected<Shown<Asked<Me>>, S> {
  return useSuspended(meOf(useKubecast(), kinds), options) as never;
}

/** As {@link useAccess}, below a Suspense. */
export function useSuspenseAccess<S = Access | undefined>(resource: Resource<KubeObject>, query?: AccessQuery, options?: Selecting<Access | undefined, S>): Selected<Shown<Asked<Access>>, S> {
  return useSuspended(accessOf(useKubecast(), resource, query), options) as never;
}

/** As {@link useHistory}, below a Suspense. A page more does not suspend. */
export function useSuspenseHistory(resource: Resource<KubeObject>, query: PastQuery): Shown<Past>;
/** The same, of which something is selected. */
export function useSuspenseHistory<S = readonly PastJob[]>(resource: Resource<KubeObject>, query: PastQuery, options: Selecting<readonly PastJob[], S>): SelectedPast<S>;
export function useSuspenseHistory(resource: Resource<KubeObject>, query: PastQuery, options?: Options): never {
  return useSuspended(pastOf(useKubecast(), resource, query), options) as never;
}

/** As {@link useTransitions}, below a Suspense. */
export function useSuspenseTransitions<S = readonly Transition[]>(resource: Resource<KubeObject>, query: TransitionQuery, options?: Selecting<readonly Transition[], S>): Selected<Shown<Watch<Transition>>, S> {
  return useSuspended(useKubecast().follow(transitions(resource, query)), options) as never;
}

/** As {@link useInfiniteList}, below a Suspense. A page more does not suspend; another list does, unless it is asked for in a transition of React's. */
export function useSuspenseInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: InfiniteListQuery<T, F>,
  options?: Selecting<readonly Only<T, F>[], S>,
): Selected<Shown<InfiniteList<Only<T, F>>>, S> {
  return useSuspended<InfiniteList<unknown>>(infiniteListOf<T, F>(useKubecast(), resource, query), options) as never;
}

/** As {@link useQueue}, below a Suspense. */
export function useSuspenseQueue<S = QueueWithJobs | undefined>(
  namespace: string,
  name: string,
  query?: QueueQuery,
  options?: Selecting<QueueWithJobs | undefined, S>,
): Selected<Shown<Watch<QueueWithJobs>>, S> {
  return oneOf(useSuspended(useKubecast().follow(queue(namespace, name, query)), ofOne(options)), options);
}

/** As {@link useQueues}, below a Suspense. */
export function useSuspenseQueues<S = readonly Queue[]>(query?: Pick<QueueQuery, 'cluster'>, options?: Selecting<readonly Queue[], S>): Selected<Shown<Queues>, S> {
  return useSuspended(queuesOf(useKubecast(), query), options) as never;
}

/** As {@link useNotifications}, below a Suspense. */
export function useSuspenseNotifications(): Shown<Inbox> {
  return useSuspended(inboxOf(useKubecast()));
}

/** How long something is kept that has arrived, and no component has come for, in milliseconds: another may be waited for beside it. */
const patience = 30_000;
const arriving = new WeakMap<object, () => void>();

type Suspending = Followable & { readonly getSnapshot: () => { readonly status: string } };

/** Settles once something complete is there, or never will be. It is held until a component subscribes to it, which only one that is rendered does. */
function arrival(watch: Suspending): Promise<unknown> {
  const arrived = ready(watch as unknown as Watch<unknown>).catch(() => undefined);
  if (!arriving.has(watch)) {
    const leave = watch.subscribe(() => undefined);
    const letGo = (): void => {
      if (arriving.get(watch) === letGo) arriving.delete(watch);
      leave();
    };
    arriving.set(watch, letGo);
    void arrived.then(() => setTimeout(letGo, patience));
  }
  return arrived;
}

function useSuspended<F extends Suspending>(watch: F, options?: Options): Shown<F> {
  const now: Shown<F> & { readonly status?: unknown } = useShown(watch, options);
  useEffect(() => arriving.get(watch)?.(), [watch]); // it has been subscribed to by then
  if (now.status !== 'loading') return now;
  // A server would wait for a promise until the request ends. For an error it sends the fallback, and the browser renders what is below it.
  if (isServer) throw new Error('on a server there is only what was made ready and dehydrated before; the browser renders this');
  // React renders it again once the promise has settled. It watches meanwhile, in place of a component that is not there yet.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw arrival(watch);
}

/** One object: `useObject(jobs, { namespace, name }).data`. It is `undefined` while it is not known, and `live` without one if there is none. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[], S = Only<T, F> | undefined>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
  options?: Selecting<Only<T, F> | undefined, S>,
): Selected<Shown<Watch<Only<T, F>>>, S>;
/** The same; with `'skip'`, or undefined, nothing is watched, and the status is `idle`. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[], S = Only<T, F> | undefined>(
  resource: Resource<T>,
  query: (QueryOf<T, F> & { readonly name: string }) | Skip,
  options?: Selecting<Only<T, F> | undefined, S>,
): Skippable<Selected<Shown<Watch<Only<T, F>>>, S>>;
export function useObject<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query: (QueryOf<T, F> & { readonly name: string }) | Skip, options?: Options): never {
  const kc = useKubecast();
  if (!isSkip(query)) named(query.name);
  return oneOf(useShown<Watch<unknown>>(isSkip(query) ? idleWatch : kc.watch<T, F>(resource, query), ofOne(options)), options);
}

/** For what is not made of objects, or only of some: `useFollow(transitions(jobs, { namespace }))`. */
export function useFollow<T, More, S = readonly T[]>(source: Source<T, More>, options?: Selecting<readonly T[], S>): Selected<Shown<Watch<T, More>>, S>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useFollow<T, More, S = readonly T[]>(source: Source<T, More> | Skip, options?: Selecting<readonly T[], S>): Skippable<Selected<Shown<Watch<T, More>>, S>>;
export function useFollow<T, More>(source: Source<T, More> | Skip, options?: Options): never {
  return useFollowed(source, options) as never;
}

function useFollowed<T, More>(source: Source<T, More> | Skip, options?: Options): Shown<Watch<T, More>> {
  const kc = useKubecast();
  return useShown<Watch<T, More>>(isSkip(source) ? idleWatch : kc.follow(source), options);
}

/** How many objects there are of each value: `useCount(pods, ['status.phase'])`, or by two paths. */
export function useCount<T extends KubeObject, const B extends readonly string[], S = readonly Count[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query?: CountQuery<T>,
  options?: Selecting<readonly Count[], S>,
): Selected<Shown<Watch<Count>>, S>;
/** The same; with `'skip'` nothing is counted, and the status is `idle`. */
export function useCount<T extends KubeObject, const B extends readonly string[], S = readonly Count[]>(
  resource: Resource<T>,
  by: B & Columns<T, B>,
  query: CountQuery<T> | 'skip' | undefined,
  options?: Selecting<readonly Count[], S>,
): Skippable<Selected<Shown<Watch<Count>>, S>>;
export function useCount<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Columns<T, B>, query?: CountQuery<T> | 'skip', options?: Options): never {
  return useFollowed(query === 'skip' ? query : counts<T, B>(resource, by, query), options) as never;
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `stale` (`catching-up`).
 *
 * ```tsx
 * const { data, total } = useLivePage(jobs, { sort: ['-metadata.creationTimestamp'], search, limit: 50, offset });
 * ```
 */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: PageQuery<T, F>,
  options?: Selecting<readonly Only<T, F>[], S>,
): Selected<Shown<Watch<Only<T, F>, PagePlace>>, S>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: PageQuery<T, F> | Skip,
  options?: Selecting<readonly Only<T, F>[], S>,
): Skippable<Selected<Shown<Watch<Only<T, F>, PagePlace>>, S>>;
export function useLivePage<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query: PageQuery<T, F> | Skip, options?: Options): never {
  return useHeld(useFollowed(isSkip(query) ? query : page<T, F>(resource, query), options), resource) as never;
}

/** What was shown before, until what is asked for now is there. Of another gateway, as who signs in anew has one, or of another kind, it is nothing that could stand in. */
function useHeld<S extends Parameters<typeof held>[0]>(now: S, resource: Resource<KubeObject>): S {
  const kc = useKubecast();
  const path = pathOf(resource);
  // Not as a state that is set here: what a function selects that is written in the component is another one each time that it is rendered.
  const [last] = useState<{ shown?: S; of?: readonly unknown[] }>({});
  useEffect(() => {
    if (now.status !== 'loading') Object.assign(last, { shown: now, of: [kc, path] });
  });
  const { shown = now, of = [] } = last;
  return of[0] === kc && of[1] === path ? held(shown, now) : now;
}

/**
 * A sorted, searched list that grows page by page, all of which stays live, up to 2,000 rows. When something else is asked for, the
 * rows before stay until the first page of that is complete, as `stale` (`catching-up`).
 *
 * ```tsx
 * const { data, hasNextPage, fetchNextPage, isFetchingNextPage } = useInfiniteList(jobs, { sort: ['-metadata.creationTimestamp'], limit: 50 });
 * ```
 */
export function useInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: InfiniteListQuery<T, F>,
  options?: Selecting<readonly Only<T, F>[], S>,
): Selected<Shown<InfiniteList<Only<T, F>>>, S>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useInfiniteList<T extends KubeObject, const F extends readonly string[] = readonly string[], S = readonly Only<T, F>[]>(
  resource: Resource<T>,
  query: InfiniteListQuery<T, F> | Skip,
  options?: Selecting<readonly Only<T, F>[], S>,
): Skippable<Selected<Shown<InfiniteList<Only<T, F>>>, S>>;
export function useInfiniteList<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query: InfiniteListQuery<T, F> | Skip, options?: Options): never {
  const kc = useKubecast();
  return useHeld(useShown<InfiniteList<unknown>>(isSkip(query) ? idleList : infiniteListOf<T, F>(kc, resource, query), options), resource) as never;
}

/** What the containers of a pod, or of an object's pods, write. */
export function useLogs<S = readonly LogEntry[]>(resource: Resource<KubeObject>, query: LogQuery, options?: Selecting<readonly LogEntry[], S>): Selected<Shown<Watch<LogEntry>>, S>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLogs<S = readonly LogEntry[]>(resource: Resource<KubeObject>, query: LogQuery | Skip, options?: Selecting<readonly LogEntry[], S>): Skippable<Selected<Shown<Watch<LogEntry>>, S>>;
export function useLogs(resource: Resource<KubeObject>, query: LogQuery | Skip, options?: Options): never {
  return useFollowed(isSkip(query) ? query : logs(resource, query), options) as never;
}

/** What of a history is shown by who selects: the jobs, and not the transitions besides. */
type SelectedPast<S> = Omit<Selected<Shown<Past>, S>, 'jobs' | 'more' | 'transitions'>;

/**
 * The jobs of a history, past ones too, page by page, and the states through which they went. With `select` it has no `transitions`: {@link useTransitions} has.
 *
 * ```tsx
 * const { data, hasNextPage, fetchNextPage, isFetchingNextPage } = useHistory(jobs, { owner: 'me', limit: 50 });
 * ```
 */
export function useHistory(resource: Resource<KubeObject>, query: PastQuery): Shown<Past>;
/** The same; with `'skip'`, or undefined, nothing is asked for, and the status is `idle`. */
export function useHistory(resource: Resource<KubeObject>, query: PastQuery | Skip): Skippable<Shown<Past>>;
/** The same, of which something is selected. */
export function useHistory<S = readonly PastJob[]>(resource: Resource<KubeObject>, query: PastQuery, options: Selecting<readonly PastJob[], S>): SelectedPast<S>;
/** The same, of which something is selected; with `'skip'`, or undefined, nothing is asked for. */
export function useHistory<S = readonly PastJob[]>(resource: Resource<KubeObject>, query: PastQuery | Skip, options: Selecting<readonly PastJob[], S>): Skippable<SelectedPast<S>>;
export function useHistory(resource: Resource<KubeObject>, query: PastQuery | Skip, options?: Options): never {
  const kc = useKubecast();
  return useShown(isSkip(query) ? idlePast : pastOf(kc, resource, query), options) as never;
}

/** The states through which jobs went, the newest 100 of them and what comes, the oldest first: `useTransitions(jobs, { namespace, name })`. */
export function useTransitions<S = readonly Transition[]>(resource: Resource<KubeObject>, query: TransitionQuery, options?: Selecting<readonly Transition[], S>): Selected<Shown<Watch<Transition>>, S>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useTransitions<S = readonly Transition[]>(
  resource: Resource<KubeObject>,
  query: TransitionQuery | Skip,
  options?: Selecting<readonly Transition[], S>,
): Skippable<Selected<Shown<Watch<Transition>>, S>>;
export function useTransitions(resource: Resource<KubeObject>, query: TransitionQuery | Skip, options?: Options): never {
  return useFollowed(isSkip(query) ? query : transitions(resource, query), options) as never;
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function useMe<S = Me | undefined>(kinds?: readonly string[], options?: Selecting<Me | undefined, S>): Selected<Shown<Asked<Me>>, S>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useMe<S = Me | undefined>(kinds: readonly string[] | 'skip' | undefined, options?: Selecting<Me | undefined, S>): Skippable<Selected<Shown<Asked<Me>>, S>>;
export function useMe(kinds?: readonly string[] | 'skip', options?: Options): never {
  const kc = useKubecast();
  return useShown<Asked<Me>>(kinds === 'skip' ? idleAsked : meOf(kc, kinds), options) as never;
}

/** Whether the caller may watch, or get, or list that: `useAccess(pods, { namespace, subresource: 'log', verb: 'get' }).data?.allowed`. */
export function useAccess<S = Access | undefined>(resource: Resource<KubeObject>, query?: AccessQuery, options?: Selecting<Access | undefined, S>): Selected<Shown<Asked<Access>>, S>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useAccess<S = Access | undefined>(
  resource: Resource<KubeObject>,
  query: AccessQuery | 'skip' | undefined,
  options?: Selecting<Access | undefined, S>,
): Skippable<Selected<Shown<Asked<Access>>, S>>;
export function useAccess(resource: Resource<KubeObject>, query?: AccessQuery | 'skip', options?: Options): never {
  const kc = useKubecast();
  return useShown<Asked<Access>>(query === 'skip' ? idleAsked : accessOf(kc, resource, query), options) as never;
}

/**
 * What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices.
 *
 * ```tsx
 * const { data, unread, markRead } = useNotifications();
 * ```
 */
export function useNotifications(): Shown<Inbox>;
/** The same; with `'skip'` nothing is followed, and the status is `idle`. */
export function useNotifications(query: Skip): Skippable<Shown<Inbox>>;
export function useNotifications(query?: Skip): Skippable<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  return useShown<Inbox>(query === 'skip' ? { ...inbox, ...(idleInbox as Inbox) } : inbox);
}

/**
 * One queue, and who waits in it; with `''` for a namespace one of the whole cluster. Its `data` is `undefined` while it is not known; it is `denied` if there is
 * no such queue, or it may not be seen.
 *
 * ```tsx
 * const { data: gpu } = useQueue('team-a', 'gpu');
 * ```
 */
export function useQueue<S = QueueWithJobs | undefined>(
  namespace: string,
  name: string,
  query?: QueueQuery,
  options?: Selecting<QueueWithJobs | undefined, S>,
): Selected<Shown<Watch<QueueWithJobs>>, S>;
/** The same; with `'skip'`, or while the namespace or the name is undefined, nothing is followed, and the status is `idle`. */
export function useQueue<S = QueueWithJobs | undefined>(
  namespace: string | undefined,
  name: string | undefined,
  query?: QueueQuery | 'skip',
  options?: Selecting<QueueWithJobs | undefined, S>,
): Skippable<Selected<Shown<Watch<QueueWithJobs>>, S>>;
export function useQueue(namespace?: string, name?: string, query?: QueueQuery | 'skip', options?: Options): never {
  const source = query === 'skip' || namespace === undefined || name === undefined ? 'skip' : queue(namespace, name, query);
  return oneOf(useFollowed(source, ofOne(options)), options);
}

/** The queues that the caller may see; none where the cluster has none. */
export function useQueues<S = readonly Queue[]>(query?: Pick<QueueQuery, 'cluster'>, options?: Selecting<readonly Queue[], S>): Selected<Shown<Queues>, S>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useQueues<S = readonly Queue[]>(query: Pick<QueueQuery, 'cluster'> | 'skip' | undefined, options?: Selecting<readonly Queue[], S>): Skippable<Selected<Shown<Queues>, S>>;
export function useQueues(query?: Pick<QueueQuery, 'cluster'> | 'skip', options?: Options): never {
  const kc = useKubecast();
  return useShown<Queues>(query === 'skip' ? idleWatch : queuesOf(kc, query), options) as never;
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): ConnectionState | undefined {
  const { connection } = useKubecast();
  return useSyncExternalStore(connection.subscribe, connection.getSnapshot, useCallback(() => undefined, []));
}

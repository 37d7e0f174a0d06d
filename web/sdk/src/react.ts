'use client';

// For React: a watch is a hook, and its objects are there while the component is.

import { createContext, createElement, useCallback, useContext, useEffect, useState, useSyncExternalStore, type FunctionComponent, type ReactNode } from 'react';
import { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
import type { Asked } from './asked.ts';
import { counts, type Count, type CountQuery } from './counts.ts';
import type { PastQuery } from './history.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import { logs, type LogEntry, type LogQuery } from './logs.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import { pastOf, type Past } from './past.ts';
import type { Only, Paths } from './paths.ts';
import { queue, queuesOf, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import { ready } from './ready.ts';
import { named, type QueryOf, type Resource } from './resource.ts';
import { held, one, shown, type Followable, type One, type Shown } from './shown.ts';
import { idleAsked, idleInbox, idlePast, idleWatch, isSkip, type Skip, type Skippable } from './skip.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const isServer = !('document' in globalThis);

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

/** Follows something while the component is there. On a server nothing is followed. */
function useShown<F extends Followable>(from: F): Shown<F> {
  return shown(from, useSyncExternalStore(from.subscribe, from.getSnapshot, from.getServerSnapshot));
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```tsx
 * const { data, status } = useWatch(jobs, { namespace: 'team-a', where: 'status.active!=' });
 * ```
 */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F>): Shown<Watch<Only<T, F>>>;
/** The same; with `'skip'` nothing is watched, and the status is `idle`. */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> | 'skip' | undefined,
): Skippable<Shown<Watch<Only<T, F>>>>;
export function useWatch<T extends KubeObject, const F extends readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F> | 'skip'): Shown<Watch<Only<T, F>>> {
  const kc = useKubecast();
  return useShown(query === 'skip' ? idleWatch : kc.watch<T, F>(resource, query));
}

/**
 * As {@link useWatch}, for a component below a Suspense: it is not rendered before something complete is there. What is denied does not
 * suspend; `status` says so. On a server that has nothing of it (`dehydrate`) it throws: React sends the fallback, and the browser renders what is below it.
 */
export function useSuspenseWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
): Shown<Watch<Only<T, F>>> {
  return useSuspended(useKubecast().watch<T, F>(resource, query));
}

/** The same for one object: `useSuspenseObject(jobs, { namespace, name }).data` is `undefined` only if there is none, or it is denied. */
export function useSuspenseObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
): One<Shown<Watch<Only<T, F>>>> {
  named(query.name);
  return one(useSuspenseWatch<T, F>(resource, query));
}

/** The same for what is not made of objects, or only of some: `useSuspenseFollow(page(jobs, { limit: 50 }))`. */
export function useSuspenseFollow<T, More>(source: Source<T, More>): Shown<Watch<T, More>> {
  return useSuspended(useKubecast().follow(source));
}

/** How long something is kept that has arrived, and no component has come for, in milliseconds: another may be waited for beside it. */
const patience = 30_000;
const arriving = new WeakMap<object, () => void>();

/** Settles once something complete is there, or never will be. It is held until a component subscribes to it, which only one that is rendered does. */
function arrival(watch: Watch<unknown>): Promise<unknown> {
  const arrived = ready(watch).catch(() => undefined);
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

function useSuspended<T, More>(watch: Watch<T, More>): Shown<Watch<T, More>> {
  const now = useShown(watch);
  useEffect(() => arriving.get(watch)?.(), [watch]); // it has been subscribed to by then
  if (now.status !== 'loading') return now;
  // A server would wait for a promise until the request ends. For an error it sends the fallback, and the browser renders what is below it.
  if (isServer) throw new Error('on a server there is only what was made ready and dehydrated before; the browser renders this');
  // React renders it again once the promise has settled. It watches meanwhile, in place of a component that is not there yet.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  throw arrival(watch);
}

/** One object: `useObject(jobs, { namespace, name }).data`. It is `undefined` while it is not known, and `live` without one if there is none. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
): One<Shown<Watch<Only<T, F>>>>;
/** The same; with `'skip'`, or undefined, nothing is watched, and the status is `idle`. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: (QueryOf<T, F> & { readonly name: string }) | Skip,
): Skippable<One<Shown<Watch<Only<T, F>>>>>;
export function useObject<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: (QueryOf<T, F> & { readonly name: string }) | Skip,
): Skippable<One<Shown<Watch<Only<T, F>>>>> {
  if (isSkip(query)) return one(useWatch(resource, 'skip')) as never;
  named(query.name);
  return one(useWatch<T, F>(resource, query));
}

/** For what is not made of objects, or only of some: `useFollow(transitions(jobs, { namespace }))`. */
export function useFollow<T, More>(source: Source<T, More>): Shown<Watch<T, More>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useFollow<T, More>(source: Source<T, More> | Skip): Skippable<Shown<Watch<T, More>>>;
export function useFollow<T, More>(source: Source<T, More> | Skip): Skippable<Shown<Watch<T, More>>> {
  const kc = useKubecast();
  return useShown<Watch<T, More>>(isSkip(source) ? idleWatch : kc.follow(source)) as never;
}

/** How many objects there are of each value: `useCount(pods, ['status.phase'])`, or by two paths. */
export function useCount<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Paths<T, B>, query?: CountQuery): Shown<Watch<Count>>;
/** The same; with `'skip'` nothing is counted, and the status is `idle`. */
export function useCount<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Paths<T, B>, query: CountQuery | 'skip' | undefined): Skippable<Shown<Watch<Count>>>;
export function useCount<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Paths<T, B>, query?: CountQuery | 'skip'): Skippable<Shown<Watch<Count>>> {
  return useFollow(query === 'skip' ? query : counts<T, B>(resource, by, query));
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `catching-up`.
 *
 * ```tsx
 * const { data, total } = useLivePage(jobs, { sort: ['-metadata.creationTimestamp'], search, limit: 50, offset });
 * ```
 */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: PageQuery<T, F>,
): Shown<Watch<Only<T, F>, PagePlace>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: PageQuery<T, F> | Skip,
): Skippable<Shown<Watch<Only<T, F>, PagePlace>>>;
export function useLivePage<T extends KubeObject, const F extends readonly string[]>(
  resource: Resource<T>,
  query: PageQuery<T, F> | Skip,
): Skippable<Shown<Watch<Only<T, F>, PagePlace>>> {
  const now = useFollow(isSkip(query) ? query : page<T, F>(resource, query));
  const [before, setBefore] = useState(now);
  if (now.status !== 'loading' && (now.data !== before.data || now.status !== before.status || now.total !== before.total)) setBefore(now);
  return held(before, now);
}

/** What the containers of a pod, or of an object's pods, write. */
export function useLogs(resource: Resource<KubeObject>, query: LogQuery): Shown<Watch<LogEntry>>;
/** The same; with `'skip'`, or undefined, nothing is followed, and the status is `idle`. */
export function useLogs(resource: Resource<KubeObject>, query: LogQuery | Skip): Skippable<Shown<Watch<LogEntry>>>;
export function useLogs(resource: Resource<KubeObject>, query: LogQuery | Skip): Skippable<Shown<Watch<LogEntry>>> {
  return useFollow(isSkip(query) ? query : logs(resource, query));
}

/** The jobs of a history, past ones too, and the states through which they went: `useHistory(jobs, { owner: 'me' })`. */
export function useHistory(resource: Resource<KubeObject>, query: PastQuery): Shown<Past>;
/** The same; with `'skip'`, or undefined, nothing is asked for, and the status is `idle`. */
export function useHistory(resource: Resource<KubeObject>, query: PastQuery | Skip): Skippable<Shown<Past>>;
export function useHistory(resource: Resource<KubeObject>, query: PastQuery | Skip): Skippable<Shown<Past>> {
  const kc = useKubecast();
  return useShown(isSkip(query) ? idlePast : pastOf(kc, resource, query));
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function useMe(kinds?: readonly string[]): Shown<Asked<Me>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useMe(kinds: readonly string[] | 'skip' | undefined): Skippable<Shown<Asked<Me>>>;
export function useMe(kinds?: readonly string[] | 'skip'): Skippable<Shown<Asked<Me>>> {
  const kc = useKubecast();
  return useShown<Asked<Me>>(kinds === 'skip' ? idleAsked : meOf(kc, kinds));
}

/** Whether the caller may watch, or get, or list that: `useAccess(pods, { namespace, subresource: 'log', verb: 'get' }).data?.allowed`. */
export function useAccess(resource: Resource<KubeObject>, query?: AccessQuery): Shown<Asked<Access>>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useAccess(resource: Resource<KubeObject>, query: AccessQuery | 'skip' | undefined): Skippable<Shown<Asked<Access>>>;
export function useAccess(resource: Resource<KubeObject>, query?: AccessQuery | 'skip'): Skippable<Shown<Asked<Access>>> {
  const kc = useKubecast();
  return useShown<Asked<Access>>(query === 'skip' ? idleAsked : accessOf(kc, resource, query));
}

/**
 * What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices.
 *
 * ```tsx
 * const { items, unread, markRead } = useNotifications();
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
export function useQueue(namespace: string, name: string, query?: QueueQuery): One<Shown<Watch<QueueWithJobs>>>;
/** The same; with `'skip'`, or while the namespace or the name is undefined, nothing is followed, and the status is `idle`. */
export function useQueue(namespace: string | undefined, name: string | undefined, query?: QueueQuery | 'skip'): Skippable<One<Shown<Watch<QueueWithJobs>>>>;
export function useQueue(namespace?: string, name?: string, query?: QueueQuery | 'skip'): Skippable<One<Shown<Watch<QueueWithJobs>>>> {
  return one(useFollow(query === 'skip' || namespace === undefined || name === undefined ? 'skip' : queue(namespace, name, query)));
}

/** The queues that the caller may see; none where the cluster has none. */
export function useQueues(query?: Pick<QueueQuery, 'cluster'>): Shown<Queues>;
/** The same; with `'skip'` nothing is asked, and the status is `idle`. */
export function useQueues(query: Pick<QueueQuery, 'cluster'> | 'skip' | undefined): Skippable<Shown<Queues>>;
export function useQueues(query?: Pick<QueueQuery, 'cluster'> | 'skip'): Skippable<Shown<Queues>> {
  const kc = useKubecast();
  return useShown<Queues>(query === 'skip' ? idleWatch : queuesOf(kc, query));
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): ConnectionState | undefined {
  const { connection } = useKubecast();
  return useSyncExternalStore(connection.subscribe, connection.getSnapshot, useCallback(() => undefined, []));
}

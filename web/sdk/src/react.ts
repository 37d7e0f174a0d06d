// For React: a watch is a hook, and its objects are there while the component is.

import { createContext, createElement, useCallback, useContext, useState, useSyncExternalStore, type FunctionComponent, type ReactNode } from 'react';
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
import type { QueryOf, Resource } from './resource.ts';
import { held, one, shown, type Followable, type One, type Shown } from './shown.ts';
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
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F>): Shown<Watch<Only<T, F>>> {
  return useShown(useKubecast().watch<T, F>(resource, query));
}

/**
 * As {@link useWatch}, for a component below a Suspense: it is not rendered before something complete is there. What is denied does not
 * suspend; `status` says so. On a server that has not been given anything (`hydrate`) the fallback is rendered.
 */
export function useSuspenseWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
): Shown<Watch<Only<T, F>>> {
  const watch = useKubecast().watch<T, F>(resource, query);
  const now = useShown(watch);
  // React renders it again once the promise has settled. It watches meanwhile, in place of a component that is not there yet.
  // eslint-disable-next-line @typescript-eslint/only-throw-error
  if (now.status === 'loading') throw isServer ? new Promise(() => undefined) : ready(watch).catch(() => undefined);
  return now;
}

/** One object: `useObject(jobs, { namespace, name }).data`. It is `undefined` while it is not known, and `live` without one if there is none. */
export function useObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
): One<Shown<Watch<Only<T, F>>>> {
  return one(useWatch<T, F>(resource, query));
}

/** For what is not made of objects, or only of some: `useFollow(transitions(jobs, { namespace }))`. */
export function useFollow<T, More>(source: Source<T, More>): Shown<Watch<T, More>> {
  return useShown(useKubecast().follow(source));
}

/** How many objects there are of each value: `useCount(pods, ['status.phase'])`, or by two paths. */
export function useCount<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Paths<T, B>, query?: CountQuery): Shown<Watch<Count>> {
  return useFollow(counts<T, B>(resource, by, query));
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
): Shown<Watch<Only<T, F>, PagePlace>> {
  const now = useFollow(page<T, F>(resource, query));
  const [before, setBefore] = useState(now);
  if (now.status !== 'loading' && (now.data !== before.data || now.status !== before.status || now.total !== before.total)) setBefore(now);
  return held(before, now);
}

/** What the containers of a pod, or of an object's pods, write. */
export function useLogs(resource: Resource<KubeObject>, query: LogQuery): Shown<Watch<LogEntry>> {
  return useFollow(logs(resource, query));
}

/** The jobs of a history, past ones too, and the states through which they went: `useHistory(jobs, { owner: 'me' })`. */
export function useHistory(resource: Resource<KubeObject>, query: PastQuery): Shown<Past> {
  return useShown(pastOf(useKubecast(), resource, query));
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function useMe(kinds?: readonly string[]): Shown<Asked<Me>> {
  return useShown(meOf(useKubecast(), kinds));
}

/** Whether the caller may watch, or get, or list that: `useAccess(pods, { namespace, subresource: 'log', verb: 'get' }).data?.allowed`. */
export function useAccess(resource: Resource<KubeObject>, query?: AccessQuery): Shown<Asked<Access>> {
  return useShown(accessOf(useKubecast(), resource, query));
}

/**
 * What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices.
 *
 * ```tsx
 * const { items, unread, markRead } = useNotifications();
 * ```
 */
export function useNotifications(): Shown<Inbox> {
  return useShown(inboxOf(useKubecast()));
}

/**
 * One queue, and who waits in it; without a namespace a queue of the whole cluster. Its `data` is `undefined` while it is not known; it is `denied` if there is
 * no such queue, or it may not be seen.
 *
 * ```tsx
 * const { data: gpu } = useQueue('team-a', 'gpu');
 * ```
 */
export function useQueue(namespace: string, name: string, query?: QueueQuery): One<Shown<Watch<QueueWithJobs>>> {
  return one(useFollow(queue(namespace, name, query)));
}

/** The queues that the caller may see; none where the cluster has none. */
export function useQueues(query?: Pick<QueueQuery, 'cluster'>): Shown<Queues> {
  return useShown(queuesOf(useKubecast(), query));
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): ConnectionState | undefined {
  const { connection } = useKubecast();
  return useSyncExternalStore(connection.subscribe, connection.getSnapshot, useCallback(() => undefined, []));
}

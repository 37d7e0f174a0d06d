// For TanStack Query: a watch as a query, whose data is always what the watch shows, for as long as somebody observes the query.

import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import { ready } from './ready.ts';
import { pathOf, type QueryOf, type Resource } from './resource.ts';
import { isSkip, type Skip } from './skip.ts';
import { isFinal, type Freshness } from './state.ts';
import type { Source } from './store.ts';

/** What TanStack Query has of a query, as far as it is used here. */
export interface CachedQuery {
  readonly state: { readonly fetchStatus: string; readonly data?: unknown; readonly dataUpdatedAt: number };
  getObserversCount(): number;
  setState(state: object): void;
}

/** TanStack Query's client, as far as it is used here. */
export interface CachingClient {
  getQueryCache(): {
    find(filters: { readonly queryKey: readonly unknown[]; readonly exact: boolean }): CachedQuery | undefined;
    subscribe(listener: (event: { readonly type: string; readonly query: object }) => void): () => void;
  };
  setQueryData(queryKey: readonly unknown[], data: unknown): unknown;
}

/** What a query function is given. */
export interface QueryContext {
  readonly client: CachingClient;
  readonly queryKey: readonly unknown[];
  readonly signal: AbortSignal;
}

/** The options of a query, for `useQuery`, or for TanStack Query’s own `queryOptions`. */
export interface KubecastQuery<S> {
  readonly queryKey: readonly ['kubecast', gateway: string, path: string];
  readonly queryFn: (context: QueryContext) => Promise<S>;
  readonly enabled: boolean;
  /** What is followed is as new as can be; all else is asked for when somebody observes it. */
  readonly staleTime: (query: object) => number;
  /** The SDK tries again by itself, also once the browser is online. */
  readonly retry: false;
  readonly networkMode: 'always';
  /** What has not changed is the same object already. */
  readonly structuralSharing: false;
}

interface Following {
  readonly kc: Kubecast;
  readonly showing: (snapshot: object) => void;
  readonly end: () => void;
}

/** The queries whose data follows a watch. */
const followed = new WeakMap<object, Following>();

/**
 * A watch as a query: `data` is what the watch shows, with its own `data`, `status` and `asOf`. It is watched while somebody observes the query. What
 * stays in the cache afterwards, is prefetched or comes from a server is `stale` (`catching-up`), as of then, until it is observed and told again.
 *
 * ```ts
 * const { data: running } = useQuery(kubecastQuery(kc, jobs, { namespace: 'team-a' }));
 * ```
 *
 * What is denied fails the query with the reason, and takes its data away; it is back once it is allowed. `'skip'` is `enabled: false`.
 */
export function kubecastQuery<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  kc: Kubecast,
  resource: Resource<T>,
  query?: QueryOf<T, F> | 'skip',
): KubecastQuery<WatchSnapshot<Only<T, F>>> {
  return query === 'skip' ? queryOf(kc, undefined) : queryOf(kc, pathOf(resource, query), () => kc.watch<T, F>(resource, query));
}

/**
 * The same of what is not made of objects: lines of logs, transitions, pages and counts.
 *
 * ```ts
 * const { data: log } = useQuery(kubecastSourceQuery(kc, logs(jobs, { namespace: 'team-a', name: 'train' })));
 * ```
 */
export function kubecastSourceQuery<T, More>(kc: Kubecast, source: Source<T, More> | Skip): KubecastQuery<WatchSnapshot<T> & More> {
  return isSkip(source) ? queryOf(kc, undefined) : queryOf(kc, source.path, () => kc.follow(source));
}

function queryOf<T, More>(kc: Kubecast, path: string | undefined, watch?: () => Watch<T, More>): KubecastQuery<WatchSnapshot<T> & More> {
  return {
    queryKey: ['kubecast', kc.inside.options.gateway ?? '', path ?? 'skip'],
    queryFn: async ({ client, queryKey, signal }) => {
      const query = client.getQueryCache().find({ queryKey, exact: true });
      if (!query || !watch) throw new Error('there is nothing to ask for');
      const watched = watch();
      if (followed.get(query)?.kc !== kc) followed.get(query)?.end();
      const kept = query.state.data as WatchSnapshot<unknown> | undefined;
      // It comes from a cache that was saved while somebody observed it.
      if (kept && !followed.has(query)) client.setQueryData(queryKey, past(kept, query.state.dataUpdatedAt));
      const following = followed.get(query) ?? follow(kc, watched, query, client, queryKey);
      try {
        if (isFinal(watched.getSnapshot())) {
          watched.retry();
          await Promise.resolve(); // then it is asked for, and denied no more
        }
        const snapshot = await ready(watched, signal);
        following.showing(snapshot);
        return query.getObserversCount() > 0 ? snapshot : past(snapshot);
      } finally {
        if (query.getObserversCount() === 0) following.end();
      }
    },
    enabled: path !== undefined,
    staleTime: (query) => (followed.has(query) ? Infinity : NaN), // not 0, of which useSuspenseQuery makes a second, and would not observe it
    retry: false,
    networkMode: 'always',
    structuralSharing: false,
  };
}

/** Nobody follows it any more. */
function past<S extends Freshness>(snapshot: S, asOf = Date.now()): S {
  return snapshot.status === 'live' ? { ...snapshot, status: 'stale', reason: 'catching-up', asOf } : snapshot;
}

/** Has a query show what a watch shows, as long as it is observed. */
function follow(kc: Kubecast, watch: Watch<unknown>, query: CachedQuery, client: CachingClient, queryKey: readonly unknown[]): Following {
  let shown: object | undefined;
  const show = (): void => {
    const snapshot = watch.getSnapshot();
    const { status, error } = snapshot;
    // What is being fetched will say so itself.
    if (snapshot === shown || status === 'loading' || query.state.fetchStatus !== 'idle') return;
    shown = snapshot;
    if (!isFinal(snapshot)) client.setQueryData(queryKey, snapshot);
    else query.setState({ data: undefined, status: 'error', error: new Error(error?.message ?? status, { cause: error }) });
    if (error?.reason === 'closed') end();
  };
  const leave = watch.subscribe(show);
  const unsubscribe = client.getQueryCache().subscribe(({ type, query: of }) => {
    if (of !== query) return;
    if (type === 'removed') end();
    else if (type === 'updated') show();
    // Whoever leaves may be back at once, as React's StrictMode is.
    else if (type === 'observerRemoved') queueMicrotask(() => query.getObserversCount() === 0 && query.state.fetchStatus === 'idle' && end());
  });
  const end = (): void => {
    if (followed.get(query) !== following) return;
    followed.delete(query);
    leave();
    unsubscribe();
    const { status } = watch.getSnapshot();
    const there = client.getQueryCache().find({ queryKey, exact: true }) === query; // or it would be back in a cache that was cleared
    if (there && shown && status === 'live' && query.state.fetchStatus === 'idle') client.setQueryData(queryKey, past(watch.getSnapshot()));
  };
  const following: Following = { kc, showing: (snapshot) => (shown = snapshot), end };
  followed.set(query, following);
  return following;
}

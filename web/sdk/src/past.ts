// A history as components show it: the jobs, and the states through which they went, kept together.

import type { AskedSnapshot } from './asked.ts';
import { none } from './collection.ts';
import { transitions, type PastJob, type PastQuery, type Transition } from './history.ts';
import { notGrowing, type Grows, type Infinite } from './infinite.ts';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { pagesOf, type PastPages } from './pastpages.ts';
import type { Resource } from './resource.ts';
import { isFinal, type Freshness } from './state.ts';

/** What a history has of the jobs of one name. */
export interface PastSnapshot extends Freshness, Infinite {
  /** The jobs, the newest first: so many pages of `limit` each as were asked for. */
  readonly data: readonly PastJob[];
  /** @deprecated It is `data`. */
  readonly jobs: readonly PastJob[];
  /** @deprecated It is `hasNextPage`. */
  readonly more: boolean;
  /** The oldest first. */
  readonly transitions: readonly Transition[];
}

/** Followed while somebody has subscribed. All of it may be passed around unbound. */
export interface Past extends Grows {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => PastSnapshot;
  readonly getServerSnapshot: () => PastSnapshot;
  readonly retry: () => void;
}

const pasts = new WeakMap<Watch<Transition>, Map<string, Past>>();

/**
 * The jobs of a history, page by page (`fetchNextPage`). All that are there are read anew when a transition is told. With `states`, that is one to such a state or from it: a job
 * that leaves it is no longer one of them.
 *
 * ```ts
 * const mine = pastOf(kc, jobs, { owner: 'me', since: '24h' });
 * ```
 */
export function pastOf(kc: Kubecast, resource: Resource<KubeObject>, query: PastQuery): Past {
  const { since, states, causes, ...which } = query; // the stream can be asked for transitions to states and with causes only, and not for those that leave them
  const watch = kc.follow(transitions(resource, which));
  const key = JSON.stringify([resource, query]);
  const of = pasts.get(watch) ?? new Map<string, Past>();
  pasts.set(watch, of);
  const present = of.get(key);
  if (present) return present;
  const made = make(watch, states?.length ? new Set(states) : undefined, pagesOf(kc, resource, query));
  of.set(key, made);
  return made;
}

function make(watch: Watch<Transition>, states: ReadonlySet<string> | undefined, pages: PastPages): Past {
  const list = pages.answer;
  let shown: { readonly told: WatchSnapshot<Transition>; readonly read: AskedSnapshot<unknown>; readonly infinite: Infinite; readonly snapshot: PastSnapshot } | undefined;
  const show = (told: WatchSnapshot<Transition>, read: AskedSnapshot<unknown>, infinite: Infinite): PastSnapshot => {
    if (shown?.told === told && shown.read === read && shown.infinite === infinite) return shown.snapshot;
    const led = states ? told.data.filter(({ to }) => states.has(to)) : told.data;
    const freshness = standing(told, read, pages);
    const snapshot = freshness.status === 'denied' ? { ...nothing, ...freshness } : { ...pastOfJobs(pages.jobs ?? none, infinite), transitions: led, ...freshness };
    shown = { told, read, infinite, snapshot };
    return snapshot;
  };
  /** Whether something has been told that changes the list: a transition to or from one of its states, or from nobody knows where, or all of them anew. */
  const changes = (now: readonly Transition[], last: readonly Transition[]): boolean => {
    if (now[0] !== last[0]) return true;
    if (!states) return now.length !== last.length || now.at(-1) !== last.at(-1);
    return now.slice(last.length).some(({ from, to }) => states.has(to) || from === undefined || states.has(from));
  };
  const renew = (): void => {
    pages.renew();
    list.retry();
  };
  let last: readonly Transition[] | undefined = watch.getSnapshot().data;
  const look = (): void => {
    const { data: now, status } = watch.getSnapshot();
    if (status === 'denied') {
      pages.forget();
      last = undefined;
    } else if (status !== 'loading') { // of a watch that begins anew, all comes
      if (!last || changes(now, last)) renew();
      last = now;
    }
  };
  return {
    subscribe: (listener) => {
      pages.renew(); // should it be read at all, since nobody has listened
      const news = (): void => {
        look();
        listener();
      };
      const ends = [list.subscribe(listener), pages.subscribe(listener), watch.subscribe(news)];
      look(); // the stream goes on for a while when nobody listens
      if (pages.infinite.isFetchingNextPage) list.retry(); // nobody has waited for it
      return () => ends.forEach((end) => end());
    },
    getSnapshot: () => show(watch.getSnapshot(), list.getSnapshot(), pages.infinite),
    getServerSnapshot: () => nothing,
    retry: () => {
      watch.retry();
      renew();
    },
    fetchNextPage: pages.fetchNextPage,
  };
}

// eslint-disable-next-line @typescript-eslint/no-deprecated -- as before
const pastOfJobs = (data: readonly PastJob[], infinite: Infinite): Omit<PastSnapshot, keyof Freshness | 'transitions'> => ({ data, jobs: data, more: infinite.hasNextPage, ...infinite });

const nothing: PastSnapshot = { ...pastOfJobs(none, notGrowing), transitions: none, status: 'loading', reason: undefined, asOf: undefined, error: undefined };

/** How far both together can be trusted. A page that is not there yet says nothing of those that are. */
function standing({ data, namespaces, ...followed }: WatchSnapshot<Transition>, read: AskedSnapshot<unknown>, pages: PastPages): Freshness {
  if (isFinal(followed)) return followed;
  if (!read.error || pages.isOfNext(read.error)) return pages.jobs ? followed : { ...followed, status: 'loading', reason: undefined };
  const isThere = pages.jobs !== undefined || read.status !== 'stale';
  return { status: isThere ? read.status : 'loading', reason: isThere ? read.reason : undefined, asOf: followed.asOf, error: { reason: 'history', message: read.error.message } };
}

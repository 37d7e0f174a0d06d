// A history as components show it: the jobs, and the states through which they went, kept together.

import { asked, type Asked, type AskedSnapshot } from './asked.ts';
import { pastJobs, transitions, type PastJob, type PastQuery, type Transition } from './history.ts';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import type { Resource } from './resource.ts';
import { isFinal, type Freshness } from './state.ts';

/** What a history has of the jobs of one name. */
export interface PastSnapshot extends Freshness {
  /** The newest first. */
  readonly jobs: readonly PastJob[];
  /** These are not all the jobs. */
  readonly more: boolean;
  /** The oldest first. */
  readonly transitions: readonly Transition[];
}

/** Followed while somebody has subscribed. All of it may be passed around unbound. */
export interface Past {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => PastSnapshot;
  readonly getServerSnapshot: () => PastSnapshot;
  readonly retry: () => void;
}

type Jobs = Awaited<ReturnType<typeof pastJobs>>;

const none: Jobs = { items: [], more: false, continue: '' };

const pasts = new WeakMap<Watch<Transition>, Map<string, Past>>();

/**
 * The jobs of a history, which are read anew when a transition is told. With `states`, that is one to such a state or from it: a job
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
  const made = make(watch, states?.length ? new Set(states) : undefined, asked(kc, `past ${key}`, () => pastJobs(kc, resource, query)));
  of.set(key, made);
  return made;
}

function make(watch: Watch<Transition>, states: ReadonlySet<string> | undefined, list: Asked<Jobs>): Past {
  let shown: { readonly told: WatchSnapshot<Transition>; readonly read: AskedSnapshot<Jobs>; readonly snapshot: PastSnapshot } | undefined;
  const show = (told: WatchSnapshot<Transition>, read: AskedSnapshot<Jobs>): PastSnapshot => {
    if (shown?.told === told && shown.read === read) return shown.snapshot;
    const { items: jobs, more } = read.data ?? none;
    const led = states ? told.data.filter(({ to }) => states.has(to)) : told.data;
    shown = { told, read, snapshot: { jobs, more, transitions: led, ...standing(told, read) } };
    return shown.snapshot;
  };
  /** Whether something has been told that changes the list: a transition to or from one of its states, or from nobody knows where, or all of them anew. */
  const changes = (now: readonly Transition[], last: readonly Transition[]): boolean => {
    if (!states || now[0] !== last[0]) return now !== last;
    return now.slice(last.length).some(({ from, to }) => states.has(to) || from === undefined || states.has(from));
  };
  return {
    subscribe: (listener) => {
      let last = watch.getSnapshot().data;
      const news = (): void => {
        const now = watch.getSnapshot().data;
        if (changes(now, last)) list.retry();
        last = now;
        listener();
      };
      const ends = [list.subscribe(listener), watch.subscribe(news)];
      return () => ends.forEach((end) => end());
    },
    getSnapshot: () => show(watch.getSnapshot(), list.getSnapshot()),
    getServerSnapshot: () => nothing,
    retry: () => {
      watch.retry();
      list.retry();
    },
  };
}

const nothing: PastSnapshot = { jobs: [], more: false, transitions: [], status: 'loading', reason: undefined, asOf: undefined, error: undefined };

/** How far both together can be trusted. */
function standing({ data, namespaces, ...followed }: WatchSnapshot<Transition>, read: AskedSnapshot<Jobs>): Freshness {
  if (isFinal(followed)) return followed;
  if (!read.error) return read.data ? followed : { ...followed, status: 'loading', reason: undefined };
  return { status: read.status, reason: read.reason, asOf: followed.asOf, error: { reason: 'history', message: read.error.message } };
}

// What the history says of jobs in tables whose rows are the cluster's objects: it is asked for the jobs in sight, by uid.

import { AskedError, pastJobs, type Kubecast, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { createContext, useContext, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { jobs } from '../job/resources.ts';
import { Reading } from '../polling/polling.ts';
import type { JobRow } from './job.ts';

interface Known {
  readonly jobs: ReadonlyMap<string, PastJob>;
  /** In which state each job was when it was asked for, whether or not the history knows it. */
  readonly answered: ReadonlyMap<string, string>;
  /** No history is kept. */
  readonly none?: boolean;
}

const nothingYet: Known = { jobs: new Map(), answered: new Map() };

/** So many jobs are asked for at once; the gateway takes no more. */
const most = 100;
/** So many are remembered: who scrolls back sees what was there. */
const remembered = 5_000;
/** In milliseconds: between two questions, and until what nobody says has changed is asked for again. */
const gap = 1_000;
const again = 10_000;

/** The jobs that are in sight, and what is known of those that are or were. */
class InSight {
  readonly #kc: Kubecast;
  readonly #namespace: string;
  /** How many cells show each, and the state in which it is. */
  readonly #shown = new Map<string, { readonly cells: number; readonly state: string }>();
  readonly reading: Reading<Known>;

  constructor(kc: Kubecast, namespace: string) {
    this.#kc = kc;
    this.#namespace = namespace;
    this.reading = new Reading(() => this.#read(), gap, ({ none }) => (none ? undefined : again));
  }

  show(uid: string, state: string): () => void {
    this.#shown.set(uid, { cells: (this.#shown.get(uid)?.cells ?? 0) + 1, state });
    return () => {
      const left = this.#shown.get(uid);
      if (left && left.cells > 1) this.#shown.set(uid, { ...left, cells: left.cells - 1 });
      else this.#shown.delete(uid);
    };
  }

  async #read(): Promise<Known> {
    const before = this.reading.getSnapshot().data ?? nothingYet;
    if (before.none) return before;
    const asked = [...this.#shown];
    const uids = asked.map(([uid]) => uid);
    const questions = Array.from({ length: Math.ceil(uids.length / most) }, (_, n) => uids.slice(n * most, (n + 1) * most).join());
    let noHistory = false;
    const pages = await Promise.all(questions.map((uid) => pastJobs(this.#kc, jobs, { namespace: this.#namespace, uid, limit: most }))).catch((error: unknown) => {
      if (!(error instanceof AskedError && error.status === 404)) throw error;
      noHistory = true;
      return [];
    });
    const items = pages.flatMap((page) => page.items);
    return {
      jobs: added(before.jobs, items.map((job) => [job.uid, job])),
      answered: added(before.answered, asked.map(([uid, { state }]) => [uid, state])),
      none: noHistory,
    };
  }
}

/** The newest come last; of too many the oldest are forgotten. */
function added<T>(before: ReadonlyMap<string, T>, more: readonly (readonly [string, T])[]): ReadonlyMap<string, T> {
  const now = new Map(before);
  for (const [uid, one] of more) {
    now.delete(uid);
    now.set(uid, one);
  }
  return now.size > remembered ? new Map([...now].slice(-remembered / 2)) : now;
}

const Sight = createContext<InSight | undefined>(undefined);

/** Below it {@link usePast} knows what the history does. */
export function WithPast({ namespace, children }: { readonly namespace: string; readonly children: ReactNode }): ReactNode {
  const kc = useKubecast();
  return <Sight value={useMemo(() => new InSight(kc, namespace), [kc, namespace])}>{children}</Sight>;
}

const never = (): (() => void) => () => undefined;
const nothing = (): undefined => undefined;

interface Past {
  /** Undefined: nothing yet, or the history does not know it. */
  readonly past: PastJob | undefined;
  /** It is asked for in the state in which it is, and that is not answered yet. */
  readonly coming: boolean;
}

/** What the history says of a job that is in sight. */
export function usePast({ uid, state, finished }: Pick<JobRow<string>, 'uid' | 'state' | 'finished'>): Past {
  const sight = useContext(Sight);
  const read = useSyncExternalStore(sight?.reading.subscribe ?? never, sight?.reading.getSnapshot ?? nothing);
  useEffect(() => sight?.show(uid, state), [sight, uid, state]);
  useEffect(() => sight?.reading.ask(), [sight, uid, state, finished]);
  const coming = read !== undefined && !read.error && !read.data?.none && read.data?.answered.get(uid) !== state;
  return { past: read?.data?.jobs.get(uid), coming };
}

// What the history says of jobs in tables whose rows are the cluster's objects: it is asked for the jobs in sight, by uid.

import { AskedError, pastJobs, type Kubecast, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { createContext, useContext, useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { jobs } from '../job/resources.ts';
import { Reading } from '../polling/polling.ts';
import type { JobRow } from './job.ts';

type Known = ReadonlyMap<string, PastJob>;

const none: Known = new Map();

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
  /** No history is kept. */
  #none = false;
  /** How many cells show each. */
  readonly #shown = new Map<string, number>();
  readonly reading: Reading<Known>;

  constructor(kc: Kubecast, namespace: string) {
    this.#kc = kc;
    this.#namespace = namespace;
    this.reading = new Reading(() => this.#read(), gap, () => (this.#none ? undefined : again));
  }

  show(uid: string): () => void {
    this.#shown.set(uid, (this.#shown.get(uid) ?? 0) + 1);
    return () => {
      const left = (this.#shown.get(uid) ?? 0) - 1;
      if (left > 0) this.#shown.set(uid, left);
      else this.#shown.delete(uid);
    };
  }

  async #read(): Promise<Known> {
    const before = this.reading.getSnapshot().data ?? none;
    if (this.#none) return before;
    const uids = [...this.#shown.keys()];
    const questions = Array.from({ length: Math.ceil(uids.length / most) }, (_, n) => uids.slice(n * most, (n + 1) * most).join());
    const pages = await Promise.all(questions.map((uid) => pastJobs(this.#kc, jobs, { namespace: this.#namespace, uid, limit: most }))).catch((error: unknown) => {
      if (!(error instanceof AskedError && error.status === 404)) throw error;
      this.#none = true;
      return [];
    });
    const now = new Map(before);
    for (const job of pages.flatMap(({ items }) => items)) {
      now.delete(job.uid); // it comes last
      now.set(job.uid, job);
    }
    return now.size > remembered ? new Map([...now].slice(-remembered / 2)) : now;
  }
}

const Sight = createContext<InSight | undefined>(undefined);

/** Below it {@link usePast} knows what the history does. */
export function WithPast({ namespace, children }: { readonly namespace: string; readonly children: ReactNode }): ReactNode {
  const kc = useKubecast();
  return <Sight value={useMemo(() => new InSight(kc, namespace), [kc, namespace])}>{children}</Sight>;
}

const never = (): (() => void) => () => undefined;
const nothing = (): undefined => undefined;

/** What the history says of a job that is in sight; undefined: nothing yet, or it does not know it. */
export function usePast({ uid, state, finished }: Pick<JobRow<string>, 'uid' | 'state' | 'finished'>): PastJob | undefined {
  const sight = useContext(Sight);
  const known = useSyncExternalStore(sight?.reading.subscribe ?? never, sight?.reading.getSnapshot ?? nothing)?.data;
  useEffect(() => sight?.show(uid), [sight, uid]);
  useEffect(() => sight?.reading.ask(), [sight, uid, state, finished]);
  return known?.get(uid);
}

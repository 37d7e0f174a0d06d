// What pages show of several clusters together: each is asked by itself, so that one that is away or slow keeps back its own rows only.

import { isFinal, type Kubecast, type Transition, type Watch, type WatchSnapshot } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useMemo, useRef, useSyncExternalStore } from 'react';
import type { Observable } from '../connection/connection.ts';
import type { Read, Reading } from '../polling/polling.ts';
import type { View } from '../view/view.ts';
import { inCluster } from './inCluster.ts';
import { useServed } from './served.ts';

export interface Cluster {
  /** Empty: the gateway serves no other, or no other is shown. */
  readonly name: string;
  readonly kc: Kubecast;
}

/** The clusters that such a page shows: all, or the one of its address where that says so. */
export function useClusters({ cluster, only }: View): readonly Cluster[] {
  const kc = useKubecast();
  const served = useServed();
  const key = served.length < 2 || only ? '' : JSON.stringify(served.map((one) => [one.name, one.default]));
  return useMemo(() => {
    if (key === '') return [{ name: '', kc: inCluster(kc, cluster) }];
    // The page's own is asked as the page asks it, also where its address names the default one.
    return (JSON.parse(key) as [string, boolean][]).map(([name, isDefault]) => ({ name, kc: inCluster(kc, isDefault && name !== cluster ? '' : name) }));
  }, [kc, key, cluster]);
}

/** So many are asked at once. One that is slow takes a place for as long as a question may take. */
const atOnce = 6;

interface Turns {
  asking: number;
  readonly waiting: (() => void)[];
}

const turns = new WeakMap<Kubecast, Turns>();

/** Asks a cluster when it is its turn among all of its gateway. */
export async function inTurn<T>(of: Kubecast, ask: () => Promise<T>): Promise<T> {
  const kc = inCluster(of, '');
  const now = turns.get(kc) ?? { asking: 0, waiting: [] };
  turns.set(kc, now);
  if (now.asking >= atOnce) await new Promise<void>((resolve) => now.waiting.push(resolve));
  else now.asking++;
  try {
    return await ask();
  } finally {
    const next = now.waiting.shift();
    if (next) next();
    else now.asking--;
  }
}

/** So many are followed, since a stream carries 32 watches; the others are read again after a while, in milliseconds. */
const followed = 12;
const unfollowed = 15_000;

const alike: WatchSnapshot<never> = { data: [], status: 'live', reason: undefined, asOf: undefined, error: undefined, namespaces: undefined };
const quiet: Observable<WatchSnapshot<never>> = { subscribe: () => () => undefined, getSnapshot: () => alike };

/** What is known of one cluster: the list as it was read last, and what has been told since. */
export interface Known<T> {
  readonly read: Read<T>;
  readonly told: WatchSnapshot<Transition>;
}

/** Reads each list while the page is there, and again when its watch tells something: when `signal` of it is another text. */
export function useKnown<T>(readings: readonly Reading<T>[], watches: readonly Watch<Transition>[], signal: (told: WatchSnapshot<Transition>) => string | undefined): readonly Known<T>[] {
  const kc = useKubecast();
  const reads = useAll(readings);
  const told = useAll<WatchSnapshot<Transition>>(useMemo(() => watches.map((watch, n) => (n < followed ? watch : quiet)), [watches]));
  const signals = useRef(new Map<Reading<T>, string | undefined>());
  useEffect(() => {
    readings.forEach((reading, n) => {
      const now = told[n] && signal(told[n]);
      if (now !== undefined && signals.current.get(reading) !== now) reading.ask();
      signals.current.set(reading, now);
    });
  }, [readings, told, signal]);
  useEffect(() => {
    if (readings.length <= followed) return undefined;
    const timer = setInterval(() => readings.slice(followed).forEach((reading) => reading.ask()), unfollowed);
    return () => clearInterval(timer);
  }, [readings]);
  // A permission that comes back between the two would leave a list that looks right and that nothing renews.
  const denied = reads.map(({ at }, n) => (isFinal(told[n] ?? alike) ? (at ?? '') : '')).join();
  useEffect(() => {
    if (/\d/.test(denied)) kc.wake(); // asks whether it is refused still
  }, [kc, denied]);
  return useMemo(() => reads.map((read, n) => ({ read, told: told[n] ?? alike })), [reads, told]);
}

function useAll<T>(stores: readonly Observable<T>[]): readonly T[] {
  const { subscribe, getSnapshot } = useMemo(() => together(stores), [stores]);
  return useSyncExternalStore(subscribe, getSnapshot);
}

/** What several have, which is the same list as long as each of it is the same. */
function together<T>(stores: readonly Observable<T>[]): Observable<readonly T[]> {
  let last: readonly T[] = [];
  return {
    subscribe: (listener) => {
      const ends = stores.map((store) => store.subscribe(listener));
      return () => ends.forEach((end) => end());
    },
    getSnapshot: () => {
      const now = stores.map((store) => store.getSnapshot());
      if (now.length !== last.length || now.some((one, n) => one !== last[n])) last = now;
      return last;
    },
  };
}

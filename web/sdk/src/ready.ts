// Watches for those who wait for them, or ask them for one object, rather than being told.

import { reasonOf } from './abort.ts';
import type { Identity } from './paths.ts';
import { isFinal, type Freshness } from './state.ts';

interface Watched<S> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => S;
}

type Shows = { readonly status: Freshness['status'] | 'idle'; readonly error: { readonly message: string; readonly reason?: string } | undefined };

/**
 * What is there once something complete has been received. Rejects if it is denied or has failed, or with the reason of `signal`.
 *
 * ```ts
 * const { data } = await ready(kc.watch(jobs, { namespace: 'team-a' }));
 * ```
 */
export async function ready<S extends Shows>(watch: Watched<S>, signal?: AbortSignal): Promise<S> {
  for await (const snapshot of snapshots(watch, signal)) {
    if (isFinal(snapshot)) break;
    if (snapshot.status !== 'loading') return snapshot;
  }
  if (signal?.aborted) throw reasonOf(signal);
  throw failure(watch.getSnapshot());
}

const failure = ({ status, error }: Shows): Error => new Error(error?.message || status, { cause: error });

/**
 * What is there, and what has become of it whenever that has changed. Who takes their time sees the newest only. Ends with `signal`, and when
 * the client is closed. What has `failed` otherwise is there once more as such, and then thrown, with what it failed with as its `cause`. What is
 * `denied` may be allowed again, and goes on.
 *
 * ```ts
 * for await (const { data } of snapshots(kc.watch(jobs), signal)) console.log(data.length);
 * ```
 */
export async function* snapshots<S extends Shows>(watch: Watched<S>, signal?: AbortSignal): AsyncGenerator<S, void, undefined> {
  let changed: () => void = () => undefined;
  const leave = watch.subscribe(() => changed());
  const stop = (): void => changed();
  signal?.addEventListener('abort', stop);
  try {
    let shown: S | undefined;
    while (!signal?.aborted) {
      const news = new Promise<void>((resolve) => (changed = resolve));
      const snapshot = watch.getSnapshot();
      if (snapshot === shown) {
        await news;
        continue;
      }
      shown = snapshot;
      yield snapshot;
      if (snapshot.status !== 'failed' || signal?.aborted) continue;
      if (snapshot.error?.reason === 'closed') return;
      throw failure(snapshot);
    }
  } finally {
    leave();
    signal?.removeEventListener('abort', stop);
  }
}

/** By uid, of each list that was asked; a list that is shown never changes. */
const byUid = new WeakMap<readonly object[], ReadonlyMap<string, object>>();

/**
 * The object of that uid, if the watch shows it. Not by name: another of the same name is another object.
 *
 * ```ts
 * const chosen = find(running, uid);
 * ```
 */
export function find<T extends Identity>(watch: { readonly getSnapshot: () => { readonly data: readonly T[] } }, uid: string): T | undefined {
  const { data } = watch.getSnapshot();
  let index = byUid.get(data);
  if (!index) byUid.set(data, (index = new Map(data.map((object) => [object.metadata.uid, object]))));
  return index.get(uid) as T | undefined;
}

/**
 * What a page showed last is on its screen again before the gateway has answered, with the time as of when it is, and the stream goes on from there:
 * `await keepOffline(kc, { user })`. Kept in IndexedDB, for one user of a gateway.
 *
 * @packageDocumentation
 */

import type { Kubecast } from '../kubecast.ts';
import { Disk, type Owner } from './disk.ts';
import { Keeper, removed } from './keeper.ts';

/** Whose rows are kept, which, and for how long. */
export interface OfflineOptions {
  /**
   * Who the caller is, by a name that stays the same and is nobody else's. What is kept is shown to them only. If it is another one than the last time, what
   * was kept of that one is removed.
   */
  readonly user: string;
  /** Whether a watch is kept, by the path and query that are asked for. By default all but Secrets and ConfigMaps. */
  readonly keep?: ((path: string) => boolean) | undefined;
  /** For how long, in milliseconds, what is kept is shown; a day by default. */
  readonly maxAge?: number | undefined;
  /** How many characters of JSON are kept; 32 Mi by default. What was seen last comes first. */
  readonly maxSize?: number | undefined;
  /** How often is written what has changed, in milliseconds; 10,000 by default. It is also written when the page is hidden. */
  readonly every?: number | undefined;
}

/**
 * Why nothing is kept (any more):
 *
 * - `unavailable`: there is no IndexedDB, as in some private windows, it does not open, or it is of a newer form
 * - `full`: the browser has no room; what was there is removed
 * - `failed`: it cannot be written
 * - `cleared`: by this page, or by another one: its user has signed out, somebody else has signed in, or permissions have changed, and another page keeps what may still be seen. So it is no sign-out by itself
 * - `closed`: by the page, or since another page wants to renew its form
 */
export type OfflineEnd = 'unavailable' | 'full' | 'failed' | 'cleared' | 'closed';

/** What is kept of a page's watches. */
export interface Offline {
  /** Why nothing is kept (any more); undefined: it is. */
  readonly end: OfflineEnd | undefined;
  /** Writes what has changed, at once. Resolves when it is written, or cannot be. */
  save(): Promise<void>;
  /** For a user who signs out: resolves once nothing of theirs is on disk, and rejects if it cannot be removed. Nothing is written any more, by this page or by any other that is open. */
  clear(): Promise<void>;
  /** Writes no more. What is on disk stays. */
  close(): void;
}

/**
 * To be called once, before anything is watched. Resolves once what is on disk is there to be shown, in a few milliseconds mostly; a disk
 * that does not open is waited for two seconds at most. Where nothing can be kept, with an {@link Offline} that says why. It never rejects.
 *
 * ```ts
 * const kc = createKubecast({ token });
 * const offline = await keepOffline(kc, { user: 'mara' });
 * root.render(<KubecastProvider client={kc}><RunningJobs /></KubecastProvider>);
 * // and where the user signs out
 * await offline.clear();
 * ```
 *
 * Objects, pages and counts are kept; logs and histories begin anew. It is removed when the user's permissions change, and when the gateway says that
 * nobody is signed in.
 */
export async function keepOffline(kc: Kubecast, options: OfflineOptions): Promise<Offline> {
  let keeper: Keeper | undefined;
  let disk: Disk | undefined;
  const owner: Owner = [kc.inside.options.gateway ?? '', options.user];
  try {
    disk = await Disk.open(owner, () => keeper?.close());
    keeper = new Keeper(kc, disk, options);
    await keeper.begin();
    return keeper;
  } catch {
    disk?.close();
    // What is there from before is removed all the same.
    return { end: 'unavailable', save: () => Promise.resolve(), clear: () => removed(owner), close: () => undefined };
  }
}

// What most callers want: several watches on one stream, as live collections.

import { Client, type ClientOptions } from './client.ts';
import type { Collection } from './collection.ts';
import { isFinal, type ConnectionState } from './state.ts';
import { Store, type Kinds, type StoreOptions } from './store.ts';

export interface LiveOptions<K extends Kinds>
  extends Pick<ClientOptions, 'token' | 'session' | 'heartbeat' | 'openTimeout' | 'signal' | 'fetch' | 'random'>,
    Pick<StoreOptions<K>, 'seed' | 'schedule'> {
  /** The gateway's origin; empty: the page's own. */
  readonly gateway?: string | undefined;
  /**
   * From the caller's names (`[a-z][a-z0-9]*`) to the paths, with query, that it would GET. A watch of K
   * that is left out here has no collection.
   */
  readonly watches: { readonly [W in keyof K & string]?: string };
}

/** A value to read and to subscribe to, as React's useSyncExternalStore wants it. */
export interface Observable<T> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => T;
}

/**
 * ```ts
 * const live = new Live<{ jobs: Job }>({
 *   watches: { jobs: '/apis/batch/v1/jobs' },
 *   token: () => sessionStorage.getItem('token') ?? undefined,
 * });
 * live.collection('jobs').subscribe(() => render(live.collection('jobs').getSnapshot().items));
 * ```
 *
 * Connects at once and stays connected until `close` or a final state. A position belongs to a set of
 * paths: to watch others, make another one, with `seed` so that nothing blinks.
 */
export class Live<K extends Kinds> {
  readonly #store: Store<K>;
  readonly #client: Client;
  readonly #listeners = new Set<() => void>();

  /** The state of the connection. Told at once, not in batches. */
  readonly connection: Observable<ConnectionState> = {
    subscribe: (listener) => {
      this.#listeners.add(listener);
      return () => this.#listeners.delete(listener);
    },
    getSnapshot: () => this.#client.state,
  };

  constructor(options: LiveOptions<K>) {
    const { gateway = '', watches, seed, schedule, ...client } = options;
    this.#store = new Store<K>({ watches: Object.keys(watches), seed, schedule });
    this.#client = new Client({
      ...client,
      url: gateway + streamPath(watches),
      onOpen: (resumed) => this.#store.opened(resumed),
      onEvent: (event) => {
        if (!this.#store.apply(event)) this.#client.startOver();
      },
      onState: () => {
        for (const listener of [...this.#listeners]) listener();
      },
    });
  }

  /** The objects of one watch. Always the same object for the same name. */
  collection<W extends keyof K & string>(watch: W): Collection<K[W]> {
    return this.#store.collection(watch);
  }

  /** See {@link Client.retryNow}. */
  retryNow(): void {
    this.#client.retryNow();
  }

  close(): void {
    this.#client.close();
  }

  get closed(): boolean {
    return isFinal(this.#client.state);
  }
}

/** The path of a stream of several watches. */
export function streamPath(watches: { readonly [watch: string]: string | undefined }): string {
  const query = new URLSearchParams();
  for (const [name, path] of Object.entries(watches)) {
    if (path !== undefined) query.set(name, path);
  }
  return `/stream?${query.toString()}`;
}

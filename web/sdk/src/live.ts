// What most callers want: several watches on one stream, as live collections.

import { Client, type ClientOptions } from './client.ts';
import type { Collection } from './collection.ts';
import { Listeners } from './listeners.ts';
import { isFinal, type ConnectionState } from './state.ts';
import { Store, type Kinds, type StoreOptions } from './store.ts';

/** Which gateway, as whom, and what is watched. */
export interface LiveOptions<K extends Kinds>
  extends Pick<ClientOptions, 'token' | 'session' | 'heartbeat' | 'openTimeout' | 'signal' | 'share' | 'fetch' | 'random'>,
    Pick<StoreOptions<K>, 'seed' | 'schedule'> {
  /** The gateway's origin; empty: the page's own. */
  readonly gateway?: string | undefined;
  /**
   * From the caller's names (`[a-z][a-z0-9]*`) to the paths, with query, that it would GET. A watch of K
   * that is left out here has no collection.
   */
  readonly watches: { readonly [W in keyof K & string]?: string };
  /** Those of them that are watched at first; by default all. See {@link Live.watch}. */
  readonly active?: readonly (keyof K & string)[] | undefined;
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
 * Connects at once and stays connected until `close` or a final state. A name has one path for good: to watch others, make
 * another one, with `seed` so that nothing blinks.
 */
export class Live<K extends Kinds> {
  readonly #store: Store<K>;
  readonly #client: Client;
  readonly #watches: LiveOptions<K>['watches'];
  readonly #gateway: string;
  /** What a stream carries that has just been opened and has said nothing yet. */
  #carried: readonly string[] | undefined;
  readonly #listeners = new Listeners();

  /** The state of the connection. Told at once, not in batches. */
  readonly connection: Observable<ConnectionState> = {
    subscribe: this.#listeners.subscribe,
    getSnapshot: () => this.#client.state,
  };

  constructor(options: LiveOptions<K>) {
    const { gateway = '', watches, active, seed, schedule, ...client } = options;
    this.#gateway = gateway;
    this.#watches = watches;
    this.#store = new Store<K>({ watches: Object.keys(watches), seed, schedule });
    this.#client = new Client({
      ...client,
      url: this.#addressOf(active ?? Object.keys(watches)),
      onOpen: (resumed, url) => {
        this.#carried = this.#namesIn(url);
        this.#store.opened(resumed);
      },
      onEvent: (event) => {
        // From here on positions leave out what the stream does not carry. Those of the connection's own events may not.
        if (this.#carried && event.type !== 'goodbye' && event.type !== 'expiring') {
          this.#store.left(this.#carried);
          this.#carried = undefined;
        }
        if (!this.#store.apply(event)) this.#client.startOver();
      },
      onState: () => this.#listeners.tell(),
    });
  }

  /** The objects of one watch. Always the same object for the same name. */
  collection<W extends keyof K & string>(watch: W): Collection<K[W]> {
    return this.#store.collection(watch);
  }

  /**
   * Watches these of the names, and no others. What is watched before and after goes on without a gap; the rest keeps its
   * objects, as `refreshing`, until it is watched again and its snapshot is complete.
   */
  watch(names: readonly (keyof K & string)[]): void {
    this.#client.follow(this.#addressOf(names));
  }

  #addressOf(names: readonly string[]): string {
    const watches: { readonly [watch: string]: string | undefined } = this.#watches;
    return this.#gateway + streamPath(Object.fromEntries(names.map((name) => [name, watches[name]])));
  }

  #namesIn(url: string): string[] {
    const query = new URLSearchParams(url.slice(url.indexOf('?')));
    return Object.keys(this.#watches).filter((name) => query.has(name));
  }

  /** See {@link Client.wake}. */
  retryNow(): void {
    this.#client.wake();
  }

  /** See {@link Client.wake}. */
  wake(): void {
    this.#client.wake();
  }

  /** See {@link Client.pause}. */
  pause(): void {
    this.#client.pause();
  }

  resume(): void {
    this.#client.resume();
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

// All watches of a page on one stream: each is there as long as somebody looks at it.

import { backoff } from './backoff.ts';
import { Client } from './client.ts';
import type { ClientOptions } from './clientoptions.ts';
import { none, WatchedCollection } from './collection.ts';
import { sleep } from './deadline.ts';
import { isOverload } from './end.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { finalOf, isRefusal } from './lost.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import { refusalOf, request } from './refusals.ts';
import { pathOf, streamPath, type QueryOf, type Resource } from './resource.ts';
import { closed, isFinal, isSame, unknown, type ConnectionState, type Freshness, type Trouble } from './state.ts';
import { Store, type Sink, type Source, type StoreOptions } from './store.ts';

/** Which gateway, and as whom. */
export interface KubecastOptions
  extends Pick<ClientOptions, 'token' | 'session' | 'heartbeat' | 'openTimeout' | 'share' | 'fetch' | 'random'>,
    Pick<StoreOptions, 'schedule'> {
  /** Where the gateway is, without a slash at its end: its origin, and the path below which it stands, as `/tools/kubecast`. Empty: the root of the page's own origin. */
  readonly gateway?: string | undefined;
  /** How long a watch that nobody looks at any more is kept, in milliseconds: for who comes back at once. */
  readonly linger?: number | undefined;
}

/** What a subscriber sees: immutable, and the same one until the next notification. What is `denied`, or has `failed` by itself, is empty; the other watches go on. */
export interface WatchSnapshot<T> extends Freshness {
  /** In order of arrival. An object that did not change keeps its identity. */
  readonly data: readonly T[];
  /** The namespaces that the watch is restricted to; undefined: none that was told. */
  readonly namespaces: readonly string[] | undefined;
}

/** Watched while somebody has subscribed. Made for React's useSyncExternalStore; all of it may be passed around unbound. */
export interface Watch<T, More = unknown> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => WatchSnapshot<T> & More;
  /** What a server renders: it watches nothing. */
  readonly getServerSnapshot: () => WatchSnapshot<T> & More;
  /** Tries at once what is being waited for, or again what was denied; what else was denied, if it is allowed by now. */
  readonly retry: () => void;
}

/** What to begin with. See {@link hydrate}. */
export interface Saved {
  /** How many names have been given; the position may have any of them. */
  readonly names: number;
  /** By which name the position has a path. */
  readonly nameOf: (path: string) => string | undefined;
  /** Gives a watch what was known of it, and returns what to show until more is; undefined: nothing was. */
  readonly fill: (path: string, sink: Sink<unknown>) => WatchSnapshot<unknown> | undefined;
  /** A stream is about to be asked for that goes on from no other. Up to where all is known; undefined: nowhere. */
  readonly begin: () => { readonly lastEventId: string; readonly asOf: number | undefined } | undefined;
  /** Is told each event once it is applied. */
  readonly heard?: (event: StreamEvent) => void;
}

const nothing: WatchSnapshot<never> = { data: none, ...unknown, namespaces: undefined };
/** How long what seems to end the stream is left out of it, in milliseconds. */
const restTime = 30_000;
/** How many watches a stream carries at most (wire.md, "Addresses"). */
const mostWatches = 32;

/** One watch; of whoever looks inside. */
export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly collection: Sink<unknown>;
  readonly listeners: Listeners;
  readonly watch: Watch<unknown>;
  readonly followed: boolean;
  subscribers: number;
  timer?: ReturnType<typeof setTimeout>;
  snapshot: WatchSnapshot<unknown>;
  /** What a server has rendered, or is to. */
  server: WatchSnapshot<unknown>;
  /** Why it is refused; null: it was, and it is not known yet whether it still is. */
  refused?: Trouble | null | undefined;
  /** As of when it was what it still shows, since that is told anew, or what was missed; undefined: it is as new as the connection. */
  since: number | undefined;
  /** It is left out for now, since it seems to be what ended the stream; see {@link Kubecast.follow}. */
  aside?: boolean;
}

/**
 * ```ts
 * const kc = createKubecast({ token: () => sessionStorage.getItem('token') ?? undefined });
 * const running = kc.watch(jobs, { namespace: 'team-a', where: 'status.active!=' });
 * running.subscribe(() => render(running.getSnapshot().data));
 * ```
 */
export class Kubecast {
  readonly #options: KubecastOptions;
  readonly #store: Store;
  readonly #entries = new Map<string, Entry>();
  readonly #listeners = new Listeners();
  #client: Client | undefined;
  /** How the connection is, as far as it concerns all watches. */
  #state: ConnectionState | undefined;
  #carried: readonly string[] | undefined;
  /** What the stream was asked for last. */
  #asked!: readonly Entry[];
  #names = 0;
  #settling: Promise<void> | undefined;
  /** What was taken back last, and may be what ends the stream now. */
  #tried: Entry | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;
  #paused: boolean | undefined;
  #closed: boolean | undefined;
  /** Ends the wait for another attempt to find out who is refused. */
  #again: AbortController | undefined;
  #saved: Saved | undefined;

  /** The connection of all watches; undefined while nothing is watched. */
  readonly connection = {
    subscribe: this.#listeners.subscribe,
    getSnapshot: (): ConnectionState | undefined => this.#state,
  };

  constructor(options: KubecastOptions = {}) {
    this.#options = options;
    this.#store = new Store(options);
  }

  /** The same one for the same resource and query, as long as somebody looks at it. Nothing is asked for before somebody does. */
  watch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(resource: Resource<T>, query?: QueryOf<T, F>): Watch<Only<T, F>> {
    return this.follow({ path: pathOf(resource, query), sink: (changed) => new WatchedCollection<KubeObject>(changed), objects: true }) as unknown as Watch<Only<T, F>>;
  }

  /**
   * The same for what is not made of objects: the lines of logs ({@link logs}), the transitions of jobs ({@link transitions}).
   * Of these each can end the stream of all, since a user follows too many logs, or the history's database is away. Then the page goes
   * on without them, and they are tried again one by one.
   */
  follow<T, More>(source: Source<T, More>): Watch<T, More> {
    return this.#at(source).watch as Watch<T, More>;
  }

  /** Asks the gateway as the caller, and what `read` makes of the answer. Rejects if both take more than 20 s, or `init.signal` aborts. */
  request<T>(path: string, init: RequestInit, read: (response: Response) => T | Promise<T>): Promise<T> {
    return request(this.#options, path, init, read);
  }

  /** See {@link Client.wake}. What was refused is asked for again if it is allowed by now. */
  wake(): void {
    if (this.#closed) return;
    this.#client?.wake();
    this.#again?.abort();
    for (const entry of this.#entries.values()) {
      if (entry.refused && entry.subscribers)
        void refusalOf(this.#options, entry.path).then((refused) => {
          if (refused === undefined) entry.refused = null;
          this.#settle();
        });
    }
  }

  /** See {@link Client.pause}. */
  pause(): void {
    this.#paused = true;
    this.#client?.pause();
  }

  resume(): void {
    this.#paused = false;
    this.#client?.resume();
  }

  /** Begins with what is saved, if nothing has been asked for yet. */
  restore(saved: Saved): void {
    this.#saved = saved;
    this.#names = Math.max(this.#names, saved.names);
  }

  /** Of whoever looks inside: {@link dehydrate}, the devtools. */
  get inside() {
    return { client: this.#client, entries: this.#entries, names: this.#names, store: this.#store, options: this.#options } as const;
  }

  /** Ends all watches for good. */
  close(): void {
    this.#closed = true;
    clearTimeout(this.#rest);
    this.#again?.abort();
    for (const entry of this.#entries.values()) {
      clearTimeout(entry.timer);
      entry.refused &&= null; // and stays empty
    }
    this.#client?.close();
    // A client that was refused has ended before, and says nothing more.
    this.#state = { ...unknown, status: 'failed', error: closed, retryAt: undefined };
    this.#showAll();
  }

  #at(source: Source<unknown>): Entry {
    const { path, sink, objects } = source;
    const present = this.#entries.get(path);
    if (present) return present;
    const saved = this.#saved;
    const name = saved?.nameOf(path) ?? `w${this.#names++}`;
    // Whoever keeps a watch for longer than its entry lives comes back to a new one.
    const at = (): Entry => this.#at(source);
    const watch: Watch<unknown> = {
      subscribe: (listener) => {
        const joined = at();
        const leave = joined.listeners.subscribe(listener);
        clearTimeout(joined.timer);
        if (joined.subscribers++ === 0) this.#settle();
        return () => {
          if (leave() && --joined.subscribers === 0) this.#expire(joined);
        };
      },
      getSnapshot: () => this.#entries.get(path)?.snapshot ?? nothing,
      getServerSnapshot: () => this.#entries.get(path)?.server ?? nothing,
      retry: () => {
        if (this.#closed) return;
        at().refused &&= null;
        this.wake();
        this.#settle();
      },
    };
    const collection = this.#store.put(name, sink);
    const snapshot = saved?.fill(path, collection) ?? nothing;
    const entry: Entry = { name, path, collection, listeners: new Listeners(), watch, subscribers: 0, snapshot, server: snapshot, followed: !objects, since: snapshot.asOf };
    collection.subscribe(() => this.#show(entry, this.#carried));
    this.#entries.set(path, entry);
    this.#expire(entry); // it may have been made for nothing
    if (this.#closed) this.#show(entry);
    return entry;
  }

  #expire(entry: Entry): void {
    if (this.#closed) return; // it goes on saying so
    entry.timer = setTimeout(() => {
      // What is told of it from here on is lost, so its name, which a position may hold, is never used again.
      this.#entries.delete(entry.path);
      this.#store.forget(entry.name);
      this.#settle();
    }, this.#options.linger ?? 5_000);
  }

  /** What the stream is to carry: what somebody looks at, or has just looked at, and may be seen. */
  #wanted(): Entry[] {
    const all = [...this.#entries.values()].filter(({ subscribers, refused, name }) => !refused && (subscribers || this.#carried?.includes(name)));
    const some = all.filter(({ aside, subscribers }) => !aside && (all.length <= mostWatches || subscribers));
    if (some[0]) return some;
    for (const entry of all) entry.aside = false; // there is nothing left to be spared
    return all;
  }

  /** Brings the stream to what is wanted, once for all that changes at once. */
  #settle(): void {
    this.#settling ??= Promise.resolve().then(() => {
      this.#settling = undefined;
      this.#connect();
    });
  }

  #connect(): void {
    if (this.#closed) return;
    const present = this.#client;
    const from = present ?? this.#saved?.begin();
    const wanted = this.#wanted();
    const url = (this.#options.gateway ?? '') + streamPath(Object.fromEntries(wanted.map(({ name, path }) => [name, path])));
    this.#asked = wanted;
    if (!wanted[0]) {
      // What was refused stays so, also to who looks at the connection.
      if (![...this.#entries.values()].some(({ subscribers, refused }) => subscribers && refused)) this.#client = this.#state = this.#carried = undefined;
      present?.close();
    } else if (this.#state && !isFinal(this.#state)) {
      present?.follow(url); // which has ended, if it is being found out who was refused
    } else {
      let fresh: readonly string[] | undefined;
      const client: Client = new Client({
        ...this.#options,
        url,
        lastEventId: from?.lastEventId,
        asOf: from?.asOf,
        onOpen: (resumed, opened, behind) => {
          fresh = this.#carried = [...new URLSearchParams(opened.split('?')[1]).keys()];
          this.#toldAnew();
          this.#store.opened(resumed, behind);
        },
        onEvent: (event) => {
          // From here on positions leave out what the stream does not carry. Those of the connection's own events may not.
          if (fresh && !/goodbye|expiring/.test(event.type)) {
            this.#store.left(fresh);
            fresh = undefined;
          }
          if (event.type === 'reset') this.#toldAnew(event.watch);
          if (!this.#store.apply(event)) client.startOver();
          this.#saved?.heard?.(event);
          if (event.type === 'goodbye' && isOverload(event.reason)) this.#leaveOut();
        },
        onState: (state) => {
          if (client !== this.#client) return;
          if (isFinal(state)) this.#carried = undefined; // nobody who is gone is asked for again
          if (state.error && isRefusal(state.error.reason)) void this.#sift(state.error);
          else this.#state = state;
          this.#showAll();
        },
      });
      this.#client = client;
      this.#state = client.state;
      if (this.#paused) client.pause();
    }
    this.#showAll();
  }

  /** From here on what is heard does not make what these watches show any newer, until they have what was missed. */
  #toldAnew(name?: string): void {
    for (const entry of this.#entries.values()) if (name === undefined || entry.name === name) entry.since ??= this.#client?.asOf;
  }

  /** Goes on without what may have ended the stream, unless there is nothing else. */
  #leaveOut(): void {
    const wanted = this.#wanted();
    const out = wanted.filter((entry) => (this.#tried ? entry === this.#tried : entry.followed));
    this.#tried = undefined;
    if (out.length === wanted.length) return;
    for (const entry of out) entry.aside = true;
    this.#rest ??= setTimeout(() => this.#takeBack(), restTime);
    this.#settle();
  }

  #takeBack(): void {
    this.#tried = [...this.#entries.values()].find(({ aside }) => aside);
    this.#rest = this.#tried && setTimeout(() => this.#takeBack(), restTime);
    if (!this.#tried) return;
    this.#tried.aside = false;
    // The next time it is another one's turn.
    this.#entries.delete(this.#tried.path);
    this.#entries.set(this.#tried.path, this.#tried);
    this.#settle();
  }

  /** A stream is refused as a whole for one of its watches. Finds out which are refused, and goes on without them. */
  async #sift(refused: Trouble): Promise<void> {
    // Until then all have only lost it.
    const asOf = this.#client?.asOf;
    if (asOf) this.#state &&= { ...this.#state, status: 'stale', reason: 'reconnecting', asOf };
    const asked = this.#asked; // somebody may have left since
    let answers = await Promise.all(asked.map(({ path }) => refusalOf(this.#options, path)));
    const several = answers.filter(Boolean).length > 1;
    // eslint-disable-next-line @typescript-eslint/await-thenable -- some are, and the core has no byte to spare
    if (several) answers = await Promise.all(asked.map(({ path }, n) => answers[n] && refusalOf(this.#options, path, 'GET')));
    if (this.#closed) return; // and it says so, without another wait
    const found = answers.some(Boolean);
    // Without those that nobody looks at any more there may be few enough. If there are none, to ask for the stream again at once would go on for ever.
    if (!found && answers.includes(null)) {
      // It may be one of those of which nobody knows. Pages of one gateway come back spread over 16 s.
      this.#state &&= { ...this.#state, error: refused };
      this.#showAll();
      await sleep(backoff({ failures: 4 }, this.#options.random), (this.#again = new AbortController()).signal);
    } else if (found || asked.every(({ subscribers }) => subscribers)) {
      // If it was one of them, it was in these words. If it was none, it was what they are together.
      asked.forEach((entry, n) => (entry.refused = (found && (several || !answers[n]) ? answers[n] : refused) ?? entry.refused));
    }
    if (this.#closed) return;
    this.#state = this.#client?.state;
    this.#connect();
  }

  #showAll(): void {
    for (const entry of this.#entries.values()) this.#show(entry);
    this.#listeners.tell();
  }

  /** `told`: what the stream carries, if it has just told something. */
  #show(entry: Entry, told?: readonly string[]): void {
    if (entry.since && !this.#client && !this.#closed) return; // nothing is more recent
    const { items, phase, stale, ...more } = entry.collection.getSnapshot();
    if (phase === 'current') {
      entry.since = undefined;
      // Not before: who is allowed again may be allowed less.
      if (told?.includes(entry.name)) entry.refused = undefined;
    }
    // Nobody is signed in, and who is next may see less.
    if (this.#state?.status === 'denied') entry.refused ??= null;
    const next = { ...nothing, ...(entry.refused === undefined && { ...more, data: items }), ...describe(entry, phase, stale, this.#state) };
    if (isSame(next, entry.snapshot)) return;
    entry.snapshot = next;
    entry.listeners.tell();
  }
}

const leftOut = { status: 'stale', reason: 'reconnecting', error: { reason: 'left-out', message: '' } } as const;

function describe(
  { refused, aside, since }: Entry,
  phase: 'loading' | 'refreshing' | 'current',
  stale: { readonly since: number; readonly reason: string } | undefined,
  state: ConnectionState | undefined,
): Partial<Freshness> {
  if (refused) return { status: finalOf(refused.reason), error: refused };
  if (state && isFinal(state)) return { status: state.status, error: state.error };
  const { status, reason = 'reconnecting', asOf, error } = { ...nothing, ...state, ...(aside && leftOut) };
  if (refused === null || phase === 'loading') return { error };
  // Another watch may be stale by the gateway's word, and this one not.
  if (status !== 'live' && /reconnecting|paused/.test(reason)) return { status: 'stale', reason, asOf: since ?? asOf, error };
  if (stale) return { status: 'stale', reason: stale.reason, asOf: Math.min(since ?? Infinity, stale.since) };
  return phase === 'current' ? { status: 'live' } : { status: 'stale', reason: 'catching-up', asOf: since };
}

/** One for a page: all its watches share one stream. */
export function createKubecast(options?: KubecastOptions): Kubecast {
  return new Kubecast(options);
}

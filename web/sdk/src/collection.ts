// The objects of one watch, as its events tell them.

import { Circumstances } from './circumstances.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { mergePatch } from './mergepatch.ts';
import type { KubeObject } from './object.ts';
import type { Sink } from './store.ts';

/** What a subscriber sees: immutable, and the same one until the next notification. */
export interface Snapshot<T> {
  /** In order of arrival. An object that did not change keeps its identity. */
  readonly items: readonly T[];
  /**
   * `loading`: nothing complete was ever received; `refreshing`: events were missed, they or a new snapshot are
   * under way, and until their end the rows may be old; `current`: all that the gateway knows.
   */
  readonly phase: 'loading' | 'refreshing' | 'current';
  /** Set while the gateway's own watch is lost; `since` in milliseconds since the epoch. */
  readonly stale: { readonly since: number; readonly reason: string } | undefined;
  /**
   * The namespaces in which something is visible, once the gateway has narrowed the watch; undefined: no
   * restriction was told. Objects that are visible by their names in any namespace are not in it.
   */
  readonly namespaces: readonly string[] | undefined;
}

/** The readable half, made for React's useSyncExternalStore. Both functions may be passed around unbound. `More`: beside the items. */
export interface Collection<T, More = unknown> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => Snapshot<T> & More;
}

/** No items, and always the same: to be told of nothing for a second time is no news. */
export const none: readonly never[] = [];

/** The objects of one watch, kept by its events. */
export class WatchedCollection<T extends KubeObject> implements Sink<T> {
  readonly #objects = new Map<string, T>();
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  readonly #changed: () => void;
  // The uids told since the connection opened or the last reset, until `synced`. Kept on a resumed
  // stream too: where a connection broke between the resets of two watches, the next one's position
  // names neither, and the second watch begins a snapshot that no reset has announced to it.
  #told: Set<string> | undefined = new Set();
  #awaited = true;
  #complete = false;
  readonly #circumstances = new Circumstances();
  #snapshot: Snapshot<T>;

  /**
   * @param changed called after each event that changes what {@link commit} would show
   */
  constructor(changed: () => void) {
    this.#changed = changed;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<T> => this.#snapshot;

  /**
   * A connection begins. A snapshot that the last one left unfinished starts over: what it had told may
   * be gone by now. Without a position (`resumed` false) every watch starts with one.
   */
  opened(resumed: boolean, behind: boolean): void {
    this.#told = new Set();
    this.#circumstances.opened(resumed, behind);
    if (!resumed) this.#awaited = true;
    this.#changed();
  }

  /** Nothing of it is told any more. If it ever is again, a snapshot comes first. */
  left(): void {
    this.#awaited = true;
    this.#changed();
  }

  /** Returns false if the event cannot be applied because something must have been missed. */
  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    switch (event.type) {
      case 'added':
      case 'modified':
        this.#put(event.object as T);
        break;
      case 'deleted':
        this.#told?.delete(event.object.metadata.uid); // which may live as long as the stream
        if (!this.#objects.delete(event.object.metadata.uid)) return true;
        break;
      case 'patched': {
        const old = this.#objects.get(event.uid);
        if (!old) return false;
        const next = mergePatch(old, event.patch) as T;
        const { resourceVersion } = event;
        this.#put({ ...next, metadata: { ...next.metadata, resourceVersion } });
        break;
      }
      case 'reset':
        this.#told = new Set();
        this.#awaited = true;
        break;
      case 'synced':
        this.#finishSnapshot();
        break;
      default:
        return true; // a bookmark moves the position only, and that is the client's
    }
    this.#changed();
    return true;
  }

  #put(object: T): void {
    const { uid } = object.metadata;
    this.#objects.set(uid, object);
    this.#told?.add(uid);
  }

  /** Makes what was applied visible and tells the subscribers. */
  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #finishSnapshot(): void {
    const told = this.#told;
    this.#told = undefined;
    this.#awaited = false;
    this.#complete = true;
    if (!told) return;
    for (const uid of this.#objects.keys()) {
      if (!told.has(uid)) this.#objects.delete(uid);
    }
  }

  #build(): Snapshot<T> {
    return {
      items: this.#objects.size > 0 ? [...this.#objects.values()] : none,
      ...this.#circumstances.of(this.#awaited, this.#complete),
    };
  }
}

// Events to keyed collections, one per watch name, with notifications gathered into batches.

import { WatchedCollection, type Collection } from './collection.ts';
import type { StreamEvent } from './events.ts';
import type { KubeObject } from './object.ts';

/** Runs `flush` once, later. A browser passes something around requestAnimationFrame. */
export type Schedule = (flush: () => void) => void;

/** From the name of each watch to the type of its objects. */
export type Kinds = { readonly [watch: string]: KubeObject };

export interface StoreOptions<K extends Kinds> {
  /** The names of the watches; `['']` for a single stream. */
  readonly watches: readonly (keyof K & string)[];
  /** Objects to show until the first snapshot of their watch is complete. */
  readonly seed?: { readonly [W in keyof K]?: Iterable<K[W]> } | undefined;
  /** When subscribers are told; a microtask by default. Never more than one is asked for at a time. */
  readonly schedule?: Schedule | undefined;
}

export class Store<K extends Kinds> {
  readonly #collections = new Map<string, WatchedCollection<KubeObject>>();
  readonly #dirty = new Set<WatchedCollection<KubeObject>>();
  readonly #schedule: Schedule;
  #scheduled = false;

  constructor(options: StoreOptions<K>) {
    this.#schedule = options.schedule ?? queueMicrotask;
    for (const name of options.watches) this.add(name, options.seed?.[name]);
  }

  /** Takes the events of one more watch. */
  add(name: string, seed?: Iterable<KubeObject>): Collection<KubeObject> {
    const collection: WatchedCollection<KubeObject> = new WatchedCollection<KubeObject>(() => this.#touch(collection), seed);
    this.#collections.set(name, collection);
    return collection;
  }

  /** Takes no more of its events. They are lost, so the name must not be given again. */
  forget(name: string): void {
    this.#collections.delete(name);
  }

  /** The objects of one watch. Throws for a name the store was not made with. */
  collection<W extends keyof K & string>(watch: W): Collection<K[W]> {
    const collection = this.#collections.get(watch);
    if (!collection) throw new RangeError(`no watch is called ${JSON.stringify(watch)}`);
    return collection as unknown as Collection<K[W]>;
  }

  /** A connection begins; `resumed`: from a position. */
  opened(resumed: boolean): void {
    for (const collection of this.#collections.values()) collection.opened(resumed);
  }

  /** The stream carries these watches only. */
  left(carried: readonly string[]): void {
    for (const [name, collection] of this.#collections) {
      if (!carried.includes(name)) collection.left();
    }
  }

  /**
   * Returns false if something must have been missed, which a correct server never lets happen: the
   * caller then starts over without a position. Events of other names are ignored.
   */
  apply(event: StreamEvent): boolean {
    return this.#collections.get(event.watch)?.apply(event) ?? true;
  }

  #touch(collection: WatchedCollection<KubeObject>): void {
    this.#dirty.add(collection);
    if (this.#scheduled) return;
    this.#scheduled = true;
    try {
      this.#schedule(this.#flush);
    } catch (error) {
      this.#scheduled = false; // the next change is another chance
      console.error(error);
    }
  }

  readonly #flush = (): void => {
    this.#scheduled = false;
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const collection of dirty) collection.commit();
  };
}

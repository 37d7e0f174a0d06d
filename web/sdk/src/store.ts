// Events to keyed collections, one per watch name, with notifications gathered into batches.

import type { Collection } from './collection.ts';
import type { StreamEvent } from './events.ts';

/** Runs `flush` once, later. A browser passes something around requestAnimationFrame. */
export type Schedule = (flush: () => void) => void;

/** How a store tells. */
export interface StoreOptions {
  /** When subscribers are told; a microtask by default. Never more than one is asked for at a time. */
  readonly schedule?: Schedule | undefined;
}

/** Takes the events of one watch, and shows what has become of them. */
export interface Sink<T, More = unknown> extends Collection<T, More> {
  /** A connection begins; `resumed`: from a position, `behind`: which is not of just now. */
  opened(resumed: boolean, behind: boolean): void;
  /** Nothing of the watch is told any more. If it ever is again, a snapshot comes first. */
  left(): void;
  /** Returns false if the event cannot be applied because something must have been missed. */
  apply(event: StreamEvent): boolean;
  /** Makes what was applied visible and tells the subscribers. */
  commit(): void;
  /** What a gateway would have to say for it to be known, of what is not made of objects and can be given on; see `dehydrate`. */
  told?(): readonly StreamEvent[];
}

/** Something to follow that is not made of objects. See {@link Kubecast.follow}. */
export interface Source<T, More = unknown> {
  /** The path and query that would be asked for. */
  readonly path: string;
  readonly sink: (changed: () => void) => Sink<T, More>;
  /** It is made of objects after all: what {@link Kubecast.watch} would follow. */
  readonly objects?: boolean | undefined;
}

/** Gives the events of a stream to the watches on it, and tells their subscribers at once what changed together. */
export class Store {
  readonly #sinks = new Map<string, Sink<unknown>>();
  readonly #dirty = new Set<Sink<unknown>>();
  readonly #schedule: Schedule;
  #scheduled = false;

  constructor({ schedule }: StoreOptions = {}) {
    // Called bare: a browser's own throws if it is called on anything else.
    this.#schedule = schedule ?? ((flush) => queueMicrotask(flush));
  }

  /** Gives the events of one more watch (`''`: of a single stream) to a sink, such as {@link WatchedCollection}, which says when it has changed. */
  put<T>(name: string, make: (changed: () => void) => Sink<T>): Sink<T> {
    const sink: Sink<T> = make(() => this.#touch(sink));
    this.#sinks.set(name, sink);
    return sink;
  }

  /** Takes no more of its events. They are lost, so the name must not be given again. */
  forget(name: string): void {
    this.#sinks.delete(name);
  }

  /** A connection begins; `resumed`: from a position, `behind`: which is not of just now. */
  opened(resumed: boolean, behind: boolean): void {
    for (const sink of this.#sinks.values()) sink.opened(resumed, behind);
  }

  /** The stream carries these watches only. */
  left(carried: readonly string[]): void {
    for (const [name, sink] of this.#sinks) {
      if (!carried.includes(name)) sink.left();
    }
  }

  /**
   * Returns false if something must have been missed, which a correct server never lets happen: the
   * caller then starts over without a position. Events of other names are ignored.
   */
  apply(event: StreamEvent): boolean {
    return this.#sinks.get(event.watch)?.apply(event) ?? true;
  }

  #touch(sink: Sink<unknown>): void {
    this.#dirty.add(sink);
    if (this.#scheduled) return;
    this.#scheduled = true;
    try {
      this.#schedule(this.#told);
    } catch (error) {
      this.#scheduled = false; // the next change is another chance
      console.error(error);
    }
  }

  /** Tells now what has not been told yet. */
  flush(): void {
    const dirty = [...this.#dirty];
    this.#dirty.clear();
    for (const sink of dirty) sink.commit();
  }

  readonly #told = (): void => {
    this.#scheduled = false;
    this.flush();
  };
}

// What is told once and never changes: lines of logs, transitions of jobs. Kept in the order in which it came, the newest of it.

import { Circumstances } from './circumstances.ts';
import { none, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { parse, type JsonObject } from './object.ts';
import type { Sink } from './store.ts';

export interface SequenceOptions<T> {
  /** An item from an event's type and data; undefined: the event is none of these. */
  readonly read: (type: string, data: JsonObject) => T | undefined;
  /** How many of the newest are kept. */
  readonly keep: number;
  /** A stream that was cut goes on behind what was told, even before all that was there has been told. */
  readonly partial: boolean;
}

export class Sequence<T> implements Sink<T> {
  readonly #options: SequenceOptions<T>;
  readonly #changed: () => void;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  #items: T[] = [];
  /** What is being told anew, and takes the place of the items once it is complete. */
  #anew: T[] | undefined;
  /** How many items there were when the present connection went on behind them. */
  #before: number | undefined;
  #awaited = true;
  #complete = false;
  readonly #circumstances = new Circumstances();
  #snapshot: Snapshot<T>;

  constructor(changed: () => void, options: SequenceOptions<T>) {
    this.#changed = changed;
    this.#options = options;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<T> => this.#snapshot;

  /** A connection begins; `resumed`: from a position. */
  opened(resumed: boolean, behind: boolean): void {
    this.#circumstances.opened(resumed, behind);
    this.#changed();
    if (!resumed || (this.#awaited && !this.#options.partial)) this.#begin();
    // Where the last one broke between the resets of two watches, all is told anew without a word. That shows only at its end.
    else this.#before = this.#awaited ? undefined : this.#items.length;
  }

  /** Nothing of it is told any more. If it ever is again, then all of it. */
  left(): void {
    if (!this.#awaited || (this.#anew ?? this.#items).length > 0) this.#begin();
  }

  /** Returns false if the event cannot be read, so that something would be missed. */
  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    switch (event.type) {
      case 'synced':
        if (this.#anew) this.#items = this.#anew;
        else if (this.#before !== undefined) this.#items.splice(0, this.#before);
        this.#anew = undefined;
        this.#before = undefined;
        this.#awaited = false;
        this.#complete = true;
        break;
      case 'reset':
        // One that names a container is told among the lines, at the place where some are missing.
        if (typeof event.data.container !== 'string') this.#begin();
        else this.#take(event.type, event.data);
        break;
      case 'unknown': {
        const data = parse(event.data);
        if (!data) return false;
        this.#take(event.name, data);
        break;
      }
      default:
        return true;
    }
    this.#changed();
    return true;
  }

  /** Makes what was applied visible and tells the subscribers. */
  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #begin(): void {
    this.#awaited = true;
    this.#before = undefined;
    // What was complete stays in sight meanwhile.
    if (this.#complete) this.#anew = [];
    else this.#items = [];
    this.#changed();
  }

  #take(type: string, data: JsonObject): void {
    const item = this.#options.read(type, data);
    if (item === undefined) return;
    const items = this.#anew ?? this.#items;
    items.push(item);
    // Not at each of them, for it moves all.
    if (items.length <= 1.25 * this.#options.keep) return;
    const dropped = items.splice(0, items.length - this.#options.keep).length;
    if (this.#before !== undefined) this.#before = Math.max(0, this.#before - dropped);
  }

  #build(): Snapshot<T> {
    return {
      items: this.#items.length > 0 ? this.#items.slice(-this.#options.keep) : none,
      ...this.#circumstances.of(this.#awaited, this.#complete),
    };
  }
}

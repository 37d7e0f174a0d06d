// What is told as a whole each time: counts, a queue. The last event says all that there is.

import { Circumstances } from './circumstances.ts';
import { none, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { parse, type JsonObject } from './object.ts';
import type { Sink } from './store.ts';

export class Latest<T> implements Sink<T> {
  readonly #changed: () => void;
  readonly #name: string;
  readonly #read: (data: JsonObject) => readonly T[] | undefined;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  readonly #circumstances = new Circumstances();
  #items: readonly T[] | undefined;
  #data = '';
  #awaited = true;
  #snapshot: Snapshot<T>;

  /**
   * @param name of the events that say all
   * @param read what one says; undefined: it cannot be read
   */
  constructor(changed: () => void, name: string, read: (data: JsonObject) => readonly T[] | undefined) {
    this.#changed = changed;
    this.#name = name;
    this.#read = read;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<T> => this.#snapshot;

  opened(resumed: boolean, behind: boolean): void {
    this.#circumstances.opened(resumed, behind);
    this.#awaited ||= !resumed;
    this.#changed();
  }

  left(): void {
    this.#awaited = true;
    this.#changed();
  }

  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    if (event.type !== 'unknown' || event.name !== this.#name) return true;
    const data = parse(event.data);
    const items = data && this.#read(data);
    if (!items) return false;
    this.#items = items.length > 0 ? items : none;
    this.#data = event.data;
    this.#awaited = false;
    this.#changed();
    return true;
  }

  told(): readonly StreamEvent[] {
    return [{ watch: '', id: '', type: 'unknown', name: this.#name, data: this.#data }];
  }

  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #build(): Snapshot<T> {
    return { items: this.#items ?? none, ...this.#circumstances.of(this.#awaited, this.#items !== undefined) };
  }
}

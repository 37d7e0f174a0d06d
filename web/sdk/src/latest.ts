// What is told as a whole each time: counts, queues. The last event says all that there is.

import { Circumstances } from './circumstances.ts';
import { none, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { parse, type JsonObject } from './object.ts';
import type { Sink } from './store.ts';

export interface LatestOptions<T> {
  /** Of the events that say all. */
  readonly name: string;
  /** What one says; undefined: it cannot be read. */
  readonly read: (data: JsonObject) => readonly T[] | undefined;
  /** It has no position: each connection begins with an event, and no bookmark comes. */
  readonly anew: boolean;
}

export class Latest<T> implements Sink<T> {
  readonly #options: LatestOptions<T>;
  readonly #changed: () => void;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  readonly #circumstances = new Circumstances();
  #items: readonly T[] | undefined;
  #data = '';
  #awaited = true;
  #snapshot: Snapshot<T>;

  constructor(changed: () => void, options: LatestOptions<T>) {
    this.#changed = changed;
    this.#options = options;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<T> => this.#snapshot;

  opened(resumed: boolean, behind: boolean): void {
    const { anew } = this.#options;
    this.#circumstances.opened(resumed, behind && !anew);
    this.#awaited ||= !resumed || anew;
    this.#changed();
  }

  left(): void {
    this.#awaited = true;
    this.#circumstances.opened(true, false); // nothing is missed any more once all is told, behind which a stream that tabs share has no bookmark
    this.#changed();
  }

  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    if (event.type === 'reset') this.left();
    if (event.type !== 'unknown' || event.name !== this.#options.name) return true;
    const data = parse(event.data);
    const items = data && this.#options.read(data);
    if (!items) return false;
    this.#items = items.length > 0 ? items : none;
    this.#data = event.data;
    this.#awaited = false;
    this.#changed();
    return true;
  }

  told(): readonly StreamEvent[] {
    return [{ watch: '', id: '', type: 'unknown', name: this.#options.name, data: this.#data }];
  }

  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #build(): Snapshot<T> {
    return { items: this.#items ?? none, ...this.#circumstances.of(this.#awaited, this.#items !== undefined) };
  }
}

// Live counts: how many objects there are of each value, as a source to follow; see "Live counts" in wire.md.

import { Circumstances } from './circumstances.ts';
import { none, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { isJsonObject, parse, text, type KubeObject } from './object.ts';
import type { Paths } from './paths.ts';
import { pathOf, type Query, type Resource } from './resource.ts';
import type { Sink, Source } from './store.ts';


/** How many objects have a value. */
export interface Count {
  /** What is at the path; empty if nothing is. */
  readonly value: string;
  /** What is at each path, if there are two; else as `value`, which is the first of them. */
  readonly values: readonly string[];
  readonly count: number;
}

/** Whose counts. */
export interface CountQuery extends Pick<Query, 'namespace' | 'cluster' | 'labels' | 'where' | 'search'> {
  /** At most so many values, the most frequent. */
  readonly limit?: number | undefined;
  /** Changes are told once in so many milliseconds at most. */
  readonly conflate?: number | undefined;
}

/**
 * By one path, or by two; the most frequent first.
 *
 * ```ts
 * const byState = kc.follow(counts(pods, ['status.phase'], { namespace: 'team-a' }));
 * ```
 */
export function counts<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Paths<T, B>, query: CountQuery = {}): Source<Count> {
  const { limit, ...which } = query;
  const path = pathOf(resource, which);
  const rest = new URLSearchParams({ countBy: by.join() });
  if (limit) rest.set('limit', String(limit));
  return { path: `${path}${path.includes('?') ? '&' : '?'}${rest.toString()}`, sink: (changed) => new Counts(changed) };
}

class Counts implements Sink<Count> {
  readonly #changed: () => void;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  readonly #circumstances = new Circumstances();
  #items: readonly Count[] | undefined;
  #awaited = true;
  #snapshot: Snapshot<Count>;

  constructor(changed: () => void) {
    this.#changed = changed;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<Count> => this.#snapshot;

  opened(resumed: boolean, behind: boolean): void {
    this.#circumstances.opened(resumed, behind);
    this.#awaited ||= !resumed;
    this.#changed();
  }

  left(): void {
    this.#awaited = true;
    this.#changed();
  }

  /** Each event says all. */
  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    if (event.type !== 'unknown' || event.name !== 'counts') return true;
    const list = parse(event.data)?.counts;
    if (!Array.isArray(list)) return false;
    this.#items = list.length > 0 ? list.filter(isJsonObject).map(({ value, values, count }) => {
      const all = Array.isArray(values) ? values.map(text) : [text(value)];
      return { value: all[0] ?? '', values: all, count: Number(count) };
    }) : none;
    this.#awaited = false;
    this.#changed();
    return true;
  }

  told(): readonly StreamEvent[] {
    return [{ watch: '', id: '', type: 'unknown', name: 'counts', data: JSON.stringify({ counts: this.#snapshot.items }) }];
  }

  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #build(): Snapshot<Count> {
    return { items: this.#items ?? none, ...this.#circumstances.of(this.#awaited, this.#items !== undefined) };
  }
}

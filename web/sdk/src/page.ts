// Live pages: what stands on some places of a sorted, searched list, as a source to follow; see "Live pages" in wire.md.

import { Circumstances } from './circumstances.ts';
import { none, type Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { Listeners } from './listeners.ts';
import { mergePatch } from './mergepatch.ts';
import { parse, type KubeObject } from './object.ts';
import type { Only, SortOf } from './paths.ts';
import { pathOf, type QueryOf, type Resource } from './resource.ts';
import type { Sink, Source } from './store.ts';

/** Which places of which list. */
export type PageQuery<T extends KubeObject, F extends readonly string[]> = Omit<QueryOf<T, F>, 'name'> & {
  /** How many places, from 1 to 500. */
  readonly limit: number;
  /** The first of them; 0 by default. */
  readonly offset?: number | undefined;
  /** Paths of the objects, `-` for the greatest first; by default, and between equals, namespace and name. */
  readonly sort?: readonly SortOf<T>[] | undefined;
};

/** Beside the rows, which stand in order; undefined until the first page is complete. */
export interface PagePlace {
  /** How many there are on all pages. */
  readonly total?: number | undefined;
  /** The place of the first row. */
  readonly offset?: number | undefined;
}

/**
 * ```ts
 * const newest = kc.follow(page(jobs, { namespace: 'team-a', sort: ['-metadata.creationTimestamp'], limit: 50 }));
 * newest.getSnapshot().data, newest.getSnapshot().total
 * ```
 */
export function page<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  { limit, offset, sort, ...query }: PageQuery<T, F>,
): Source<Only<T, F>, PagePlace> {
  const path = pathOf(resource, query);
  const places = new URLSearchParams({ limit: String(limit) });
  if (offset) places.set('offset', String(offset));
  if (sort?.length) places.set('sort', sort.join());
  return {
    path: `${path}${path.includes('?') ? '&' : '?'}${places.toString()}`,
    sink: (changed) => new Page(changed) as unknown as Sink<Only<T, F>, PagePlace>,
  };
}

class Page implements Sink<KubeObject, PagePlace> {
  readonly #changed: () => void;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  readonly #circumstances = new Circumstances();
  /** What is shown: the last page that was complete, whose objects may have been modified since. */
  #rows: readonly KubeObject[] = none;
  #place: PagePlace = {};
  /** What has been told, from which the next page is made. */
  #objects = new Map<string, KubeObject>();
  #awaited = true;
  #snapshot: Snapshot<KubeObject> & PagePlace;

  constructor(changed: () => void) {
    this.#changed = changed;
    this.#snapshot = this.#build();
  }

  readonly getSnapshot = (): Snapshot<KubeObject> & PagePlace => this.#snapshot;

  /** A connection begins, which repairs a batch that was cut off. */
  opened(resumed: boolean, behind: boolean): void {
    this.#circumstances.opened(resumed, behind);
    this.#objects = new Map(this.#rows.map((object) => [object.metadata.uid, object]));
    this.#awaited ||= !resumed;
    this.#changed();
  }

  left(): void {
    this.#awaited = true;
    this.#circumstances.opened(true, false); // nothing is missed any more once all is told, behind which a stream that tabs share has no bookmark
    this.#changed();
  }

  apply(event: StreamEvent): boolean {
    if (this.#circumstances.apply(event)) this.#changed();
    switch (event.type) {
      case 'added': // it is shown once it has its place
        this.#objects.set(event.object.metadata.uid, event.object);
        return true;
      case 'modified':
        this.#modify(event.object);
        return true;
      case 'patched': {
        const old = this.#objects.get(event.uid);
        if (!old) return false;
        const next = mergePatch(old, event.patch) as KubeObject;
        const { resourceVersion } = event;
        this.#modify({ ...next, metadata: { ...next.metadata, resourceVersion } });
        return true;
      }
      case 'deleted':
        this.#objects.delete(event.object.metadata.uid);
        return true;
      case 'reset':
        this.left();
        return true;
      case 'unknown':
        return event.name !== 'page' || this.#turn(event.data);
      default:
        return true;
    }
  }

  told(): readonly StreamEvent[] {
    const { items, total, offset } = this.#snapshot;
    const of = { watch: '', id: '' };
    const uids = items.map(({ metadata }) => metadata.uid);
    return [...items.map((object): StreamEvent => ({ ...of, type: 'added', object })), { ...of, type: 'unknown', name: 'page', data: JSON.stringify({ uids, total, offset }) }];
  }

  commit(): void {
    this.#snapshot = this.#build();
    this.#listeners.tell();
  }

  #modify(object: KubeObject): void {
    const { uid } = object.metadata;
    this.#objects.set(uid, object);
    this.#rows = this.#rows.map((row) => (row.metadata.uid === uid ? object : row));
    this.#changed();
  }

  /** A batch is complete. Returns false if not all of the page was told. */
  #turn(data: string): boolean {
    const { uids, total, offset } = parse(data) ?? {};
    if (!Array.isArray(uids) || typeof total !== 'number' || typeof offset !== 'number') return false;
    const rows = uids.flatMap((uid) => this.#objects.get(uid as string) ?? []);
    if (rows.length < uids.length) return false;
    this.#rows = rows.length > 0 ? rows : none;
    this.#objects = new Map(rows.map((object) => [object.metadata.uid, object]));
    this.#place = { total, offset };
    this.#awaited = false;
    this.#changed();
    return true;
  }

  #build(): Snapshot<KubeObject> & PagePlace {
    return { items: this.#rows, ...this.#circumstances.of(this.#awaited, this.#place.total !== undefined), ...this.#place };
  }
}

// Live counts: how many objects there are of each value, as a source to follow; see "Live counts" in wire.md.

import { Latest } from './latest.ts';
import { listOf, text, type JsonObject, type KubeObject } from './object.ts';
import type { Columns } from './paths.ts';
import { pathOf, type Query, type Resource, type WhereOf } from './resource.ts';
import type { Source } from './store.ts';

/** How many objects have a value. */
export interface Count {
  /** What is at the path; empty if nothing is. */
  readonly value: string;
  /** What is at each path, if there are two; else as `value`, which is the first of them. */
  readonly values: readonly string[];
  readonly count: number;
}

/** Whose counts. */
export interface CountQuery<T extends KubeObject = KubeObject> extends Pick<Query, 'namespace' | 'cluster' | 'labels' | 'search'> {
  /** A field selector, by any path, as Kubernetes writes it or as an object. */
  readonly where?: string | WhereOf<T> | undefined;
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
export function counts<T extends KubeObject, const B extends readonly string[]>(resource: Resource<T>, by: B & Columns<T, B>, query: CountQuery<T> = {}): Source<Count> {
  const { limit, ...which } = query;
  const path = pathOf(resource, which);
  const rest = new URLSearchParams({ countBy: by.join() });
  if (limit) rest.set('limit', String(limit));
  return { path: `${path}${path.includes('?') ? '&' : '?'}${rest.toString()}`, sink: (changed) => new Latest(changed, { name: 'counts', read: readCounts, anew: false }) };
}

function readCounts({ counts: list }: JsonObject): readonly Count[] | undefined {
  return listOf(list, ({ value, values, count }) => {
    const all = Array.isArray(values) ? values.map(text) : [text(value)];
    return { value: all[0] ?? '', values: all, count: Number(count) };
  });
}

// How something of a history is asked for, and what an answer has of it; see "History" in wire.md.

import { isJsonObject, listOf, text, type JsonObject, type KubeObject } from './object.ts';
import { pathOf, type Query, type Resource } from './resource.ts';

/** The path of a question; what is undefined or empty is not asked. */
export function historyPath(resource: Resource<KubeObject>, of: Pick<Query, 'namespace' | 'name' | 'cluster'>, asked: Readonly<Record<string, string | undefined>>): string {
  const { namespace, name, cluster } = of;
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(asked)) if (value) parameters.set(key, value);
  const query = parameters.toString();
  return `/history${pathOf(resource, { namespace, name, cluster })}${query && `?${query}`}`;
}

/** What of a history an answer has; `more`: not all of it, and `continue` is where the rest begins. */
export interface PastPage<T> {
  readonly items: readonly T[];
  readonly more: boolean;
  readonly continue: string;
}

export function pastPage<T>(body: unknown, read: (data: JsonObject) => T): PastPage<T> {
  const { items, continue: rest } = isJsonObject(body) ? body : {};
  return { items: listOf(items, read) ?? [], more: text(rest) !== '', continue: text(rest) };
}

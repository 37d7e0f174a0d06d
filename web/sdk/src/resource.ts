// What is watched: a kind, and which of its objects.

import type { KubeObject } from './object.ts';
import type { ColumnOf, FieldOf, Paths } from './paths.ts';

/** A kind, and the type of its objects. */
export interface Resource<T extends KubeObject> {
  /** Empty: the core group. */
  readonly group: string;
  readonly version: string;
  readonly plural: string;
  /** Never there: carries the type. */
  readonly object?: T;
}

/**
 * ```ts
 * const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
 * ```
 */
export function defineResource<T extends KubeObject>() {
  return (kind: { readonly group?: string; readonly version: string; readonly plural: string }): Resource<T> => ({ group: '', ...kind });
}

/**
 * Labels by key: `{ app: 'train', tier: ['a', 'b'], env: { not: 'prod' }, gpu: true, old: false }` is `app=train`, `tier in (a,b)`, `env!=prod`, that there
 * is a `gpu`, and none that is `old`. All of it has to be so. What no label can be is refused.
 */
export interface Labels {
  readonly [key: string]: string | boolean | readonly string[] | { readonly not: string | readonly string[] };
}

/** Values by path: `{ 'status.phase': 'Running', 'spec.nodeName': { not: '' } }`. All of it has to be so. A dot within a key is written `\.`, and values need no escape. */
export interface Where {
  readonly [path: string]: Wanted;
}
type Wanted = string | number | boolean | { readonly not: string | number | boolean | readonly (string | number | boolean)[] };

/** The same, of which editors offer the paths that the type of the objects names. Within quotes they write a key as it is, where `\.` is a mere dot: such paths they do not offer. */
export type WhereOf<T extends KubeObject> = Where | (Where & { readonly [P in Exclude<ColumnOf<T>, `${string}\\${string}`>]?: Wanted });

/** Which objects, and how they are told; see "Event streams" in wire.md. */
export interface Query {
  /** Undefined or empty: all. */
  readonly namespace?: string | undefined;
  /** One object; not empty. */
  readonly name?: string | undefined;
  /** Of several; undefined: the default one. */
  readonly cluster?: string | undefined;
  /** A label selector, as Kubernetes writes it or as an object. */
  readonly labels?: string | Labels | undefined;
  /** A field selector, by any path, as Kubernetes writes it or as an object. */
  readonly where?: string | Where | undefined;
  /** Part of the name. */
  readonly search?: string | undefined;
  /** Only these paths of each object, and what identifies it. A dot within a key is written `\.`. */
  readonly fields?: readonly string[] | undefined;
  /** Changes come as patches. */
  readonly deltas?: boolean | undefined;
  /** At most one modification of each object in so many milliseconds, the latest. */
  readonly conflate?: number | undefined;
  /** Never there: a function, all of whose properties may be missing here but its name, is no query. */
  readonly call?: never;
}

/** No list of paths is one of these: it has editors offer what the type of the objects names, where the compiler has inferred already what was written. */
type Offered<T extends KubeObject> = readonly FieldOf<T>[] & { readonly offered: never };

/** A query whose `fields` are paths of the objects. Where they are written down, the type of what is told is narrowed to them. */
export type QueryOf<T extends KubeObject, F extends readonly string[]> = Omit<Query, 'fields' | 'where'> & {
  readonly fields?: (F & Paths<T, F>) | Offered<T> | undefined;
  /** A field selector, by any path, as Kubernetes writes it or as an object. */
  readonly where?: string | WhereOf<T> | undefined;
};

/** Throws if a name that is needed is not there: without it the path would be that of all objects, of which another one would be shown. */
export function named(name: string | undefined): void {
  if (!name) throw new Error("the name is empty; until it is known, ask for 'skip'");
}

/** A selector as text; the same for objects that mean the same. Throws at what none can say, since without it other objects would be shown. */
export function selectorOf(selector: string | Labels | Where = '', isLabels = false): string {
  if (typeof selector === 'string') return selector;
  const [paths, texts] = isLabels ? [/^[\w./-]+$/, /^[snb]\w+ [\w.-]*$/] : [/^([^=!,\\]|\\\.)+$/, /^[snb]/]; // strings, numbers and booleans
  const terms = Object.keys(selector).sort().map((key) => {
    const given = selector[key];
    const { not } = Object(given) as { readonly not?: unknown };
    const values = [not ?? given].flat().sort() as (string | number | boolean)[];
    const isEqual = not === undefined;
    const isList = isEqual && values.length > 1;
    if (!paths.test(key) || values.length < 1 || !values.every((one) => texts.test(`${typeof one} ${one}`)) || (isList && !isLabels)) throw new Error(`no selector for ${key}: ${JSON.stringify(given)}`);
    if (isLabels && typeof given === 'boolean') return given ? key : `!${key}`;
    return isList ? `${key} in (${values.join()})` : values.map((one) => `${key}${isEqual ? '' : '!'}=${String(one).replace(/[\\,=]/g, '\\$&')}`).join();
  });
  return terms.join();
}

/** The path and query that would be asked for; the same for queries that mean the same. */
export function pathOf(resource: Resource<KubeObject>, query: Query = {}): string {
  const { group, version, plural } = resource;
  const { namespace, name, cluster, labels, where, search, fields, deltas, conflate } = query;
  if (name !== undefined) named(name);
  const path = [cluster && 'clusters', cluster, group ? 'apis' : 'api', group, version, namespace && 'namespaces', namespace, plural, name];
  const text = encoded({
    labelSelector: selectorOf(labels, true),
    fieldSelector: selectorOf(where),
    search,
    fields: fields && [...fields].sort().join(),
    deltas: deltas && 'merge-patch',
    conflate: conflate && `${conflate}ms`,
  });
  return `/${path.flatMap((part) => (part ? encodeURIComponent(part) : [])).join('/')}${text && `?${text}`}`;
}

/** The path of a stream of several watches, from their names to their paths. */
export function streamPath(watches: { readonly [watch: string]: string | undefined }): string {
  return `/stream?${encoded(watches)}`;
}

/** Those that are there and not empty, as the query of an address. */
function encoded(parameters: { readonly [key: string]: unknown }): string {
  return new URLSearchParams(Object.entries(parameters).filter(([, value]) => value) as [string, string][]).toString();
}

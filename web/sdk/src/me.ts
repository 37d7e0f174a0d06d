// What the caller may watch, asked before or after a stream rather than found out by being refused.

import type { TokenSource } from './credentials.ts';
import { within } from './deadline.ts';
import { isJsonObject, listOf, objectOf, text, type JsonObject } from './object.ts';

/** Where a kind may be watched. */
export interface Watchable {
  readonly group: string;
  readonly resource: string;
  /** Everywhere. */
  readonly all: boolean;
  readonly namespaces: readonly string[];
  /** Single objects, by namespace; under the empty one those of every namespace. */
  readonly names: { readonly [namespace: string]: readonly string[] };
  /** It could not be decided; then the rest says nothing. */
  readonly unknown: boolean;
}

/** Which kinds, and as whom. */
export interface WatchableOptions {
  /** Such as `pods` and `jobs.batch`. */
  readonly kinds: readonly string[];
  /** Where the gateway is, without a slash at its end: its origin, and the path below which it stands, as `/tools/kubecast`. Empty: the root of the page's own origin. */
  readonly gateway?: string | undefined;
  /** Of several; undefined: the default one. */
  readonly cluster?: string | undefined;
  /** Without it the request carries the browser's cookie, or nothing. */
  readonly token?: TokenSource | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly fetch?: typeof fetch | undefined;
}

/** How long that may take, in milliseconds, the token included. */
const answerTime = 20_000;

/** What may be watched of some kinds, in their order. Rejects if the gateway does not answer that. */
export function watchable(options: WatchableOptions): Promise<readonly Watchable[]> {
  return within(answerTime, (signal) => ask(options, signal), options.signal);
}

async function ask(options: WatchableOptions, signal: AbortSignal): Promise<readonly Watchable[]> {
  const { kinds, gateway = '', cluster, token, fetch = globalThis.fetch } = options;
  const headers = new Headers({ Accept: 'application/json' });
  const bearer = await token?.('connect');
  if (bearer !== undefined) headers.set('Authorization', `Bearer ${bearer}`);
  const query = new URLSearchParams({ kinds: kinds.join() }).toString();
  const response = await fetch(`${gateway}/auth/me?${query}`, {
    headers,
    cache: 'no-store',
    credentials: token ? 'omit' : 'include',
    signal,
  });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  const body: unknown = await response.json();
  const clusters = listOf(objectOf(body)?.clusters, (cluster) => cluster) ?? [];
  const found = clusters.find((one) => (cluster === undefined ? one.default === true : one.name === cluster));
  const watch = listOf(found?.watch, readWatchable) ?? [];
  return kinds.map((kind) => watch.find(({ group, resource }) => kind === (group ? `${resource}.${group}` : resource)) ?? nothing(kind));
}

/** Whether anything of a kind may be watched; in a namespace, or with the empty one anywhere. */
export function mayWatch({ all, namespaces, names }: Watchable, namespace: string): boolean {
  if (all || (names['']?.length ?? 0) > 0) return true;
  if (namespace === '') return namespaces.length > 0 || Object.keys(names).length > 0;
  return namespaces.includes(namespace) || (names[namespace]?.length ?? 0) > 0;
}

export function readWatchable(kind: JsonObject): Watchable {
  const names = isJsonObject(kind.names) ? Object.entries(kind.names).map(([namespace, list]) => [namespace, texts(list)] as const) : [];
  return {
    group: text(kind.group),
    resource: text(kind.resource),
    all: kind.all === true,
    namespaces: texts(kind.namespaces),
    names: Object.fromEntries(names),
    unknown: kind.unknown === true,
  };
}

function nothing(kind: string): Watchable {
  const [resource = '', ...group] = kind.split('.');
  return { group: group.join('.'), resource, all: false, namespaces: [], names: {}, unknown: true };
}

export const texts = (value: unknown): readonly string[] => (Array.isArray(value) ? value.filter((one) => typeof one === 'string') : []);

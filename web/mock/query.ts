// What is asked of objects, as the wire contract names it: which, how much of each, in what order, how many.

import type { KubeObject } from '@kubecast/sdk';

export interface Query {
  readonly matches: (object: KubeObject) => boolean;
  /** What is told of an object. */
  readonly shape: (object: KubeObject) => KubeObject;
  /** Merge patches are wanted in place of modified objects. */
  readonly deltas: boolean;
  /** At most one modification of each object in so many milliseconds; undefined: it was not said. */
  readonly conflate: number | undefined;
  /** The version behind which a stream begins, without a snapshot; `now`: behind what there is. */
  readonly from: number | 'now' | undefined;
  readonly counts: { readonly by: readonly Path[]; readonly limit: number } | undefined;
  readonly page: Places | undefined;
  readonly compare: (a: KubeObject, b: KubeObject) => number;
}

/** Which places of an order. */
export interface Places {
  readonly limit: number;
  readonly offset: number;
}

type Path = readonly string[];

/** What cannot be asked, with the status that says so; 501 is of what the gateway has and the mock has not. */
export class BadQuery extends Error {
  readonly status: number;
  /** What the refusal's `metadata` has. */
  readonly metadata: object;
  /** In seconds. */
  readonly retryAfter: number;
  /** Why, in a word, where that is not what the status says. */
  readonly reason: string | undefined;

  constructor(message: string, status = 400, metadata: object = {}, retryAfter = 1, reason?: string) {
    super(message);
    this.reason = reason;
    this.status = status;
    this.metadata = metadata;
    this.retryAfter = retryAfter;
  }
}

/** A 404 with a reason of its own. */
export const notFound = (reason: 'NotEnabled' | 'NotRecorded' | 'NotKept', message: string): BadQuery => new BadQuery(message, 404, {}, 1, reason);

const ofStreams = ['labelSelector', 'fieldSelector', 'search', 'fields', 'deltas', 'conflate', 'heartbeat', 'resourceVersion', 'sendInitialEvents', 'countBy', 'limit', 'sort', 'offset'];
const passedOver = ['watch', 'allowWatchBookmarks', 'timeoutSeconds', 'resourceVersionMatch', 'pretty', 'lastEventId', 'last_event_id'];

/** Names that no watch on `/stream` may have. */
export const reserved: ReadonlySet<string> = new Set([...ofStreams, ...passedOver, 'continue', 'ticket']);

/** Reads a stream's parameters. */
export function queryOfStream(parameters: URLSearchParams): Query {
  for (const [key] of parameters) {
    if (!ofStreams.includes(key) && !passedOver.includes(key)) throw new BadQuery(`${key}: unknown parameter of an event stream`);
    if (parameters.getAll(key).length > 1) throw new BadQuery(`${key}: given more than once`);
  }
  heartbeatOf(parameters.get('heartbeat'));
  const asks = queryOf(parameters);
  const [counts, limit] = [asks.counts, parameters.get('limit')];
  const isWatch = !counts && limit === null;
  if (isWatch && (parameters.has('sort') || parameters.has('offset'))) throw new BadQuery('sort and offset have no meaning without limit');
  const version = parameters.get('resourceVersion') ?? '';
  const initial = parameters.get('sendInitialEvents');
  if (initial !== null && initial !== 'true' && initial !== 'false') throw new BadQuery(`sendInitialEvents: ${JSON.stringify(initial)} is neither true nor false`);
  if (!isWatch && (version || initial)) throw new BadQuery('resourceVersion: has no meaning for a page, nor for counts');
  const from = initial === 'true' ? undefined : version !== '' && version !== '0' ? whole('resourceVersion', version) : initial === 'false' ? ('now' as const) : undefined;
  const page = counts || limit === null ? undefined : { limit: whole('limit', limit, 1, 500), offset: whole('offset', parameters.get('offset') ?? '0') };
  return { ...asks, from, page };
}

/** The silence that is asked for at most, in milliseconds, from 5 to 60 s; undefined: it was not said. */
export function heartbeatOf(text: string | null): number | undefined {
  if (!text) return undefined;
  const duration = durationOf('heartbeat', text) ?? 0;
  if (duration <= 0) throw new BadQuery(`heartbeat: ${JSON.stringify(text)} is not a duration such as 15s`);
  return Math.min(60_000, Math.max(5_000, duration));
}

/** Reads a list's parameters. Those that are not known are passed over, as by an API server. @param now the version that there is */
export function queryOfList(parameters: URLSearchParams, now: number): Query & { readonly token: string } {
  versionAsked(parameters, now);
  const page = { limit: whole('limit', parameters.get('limit') || '0'), offset: whole('offset', parameters.get('offset') || '0') };
  const token = parameters.get('continue') ?? '';
  if (parameters.get('offset') && (token !== '' || !parameters.get('sort'))) throw new BadQuery('offset: it is of a sorted list, and of its first page');
  if (parameters.has('countBy')) {
    const beside = ['sort', 'fields', 'continue', 'offset'].find((key) => parameters.get(key));
    if (beside) throw new BadQuery(`${beside}: has no meaning beside countBy`);
  }
  return { ...queryOf(parameters), page, token };
}

/** What is asked of a watch in the form of Kubernetes. */
export interface OwnQuery extends Pick<Query, 'matches' | 'shape'> {
  /** Behind which version it begins; `now`: behind what there is; `state`: with what there is; `stream`: also saying where that ends. */
  readonly from: number | 'now' | 'state' | 'stream';
  readonly bookmarks: boolean;
  /** In milliseconds; 0: it does not end by itself. */
  readonly timeout: number;
}

/** Those that are not known are passed over, as by an API server. */
export function queryOfOwnWatch(parameters: URLSearchParams): OwnQuery {
  const none = ['sort', 'countBy', 'offset'].find((key) => parameters.get(key));
  if (none) throw new BadQuery(`${none}: has no meaning for a watch`);
  const get = (key: string): string => parameters.get(key) ?? '';
  const [version, match, initial] = [get('resourceVersion'), get('resourceVersionMatch'), get('sendInitialEvents')];
  if (initial !== '' && match !== 'NotOlderThan') throw new BadQuery('resourceVersionMatch: sendInitialEvents requires NotOlderThan', 422);
  if (initial === '' && match !== '') throw new BadQuery('resourceVersionMatch: is forbidden for watch unless sendInitialEvents is provided', 422);
  const behind = version === '' || version === '0' ? undefined : whole('resourceVersion', version);
  const from = ['true', '1'].includes(initial) ? 'stream' : (behind ?? (initial === '' ? 'state' : 'now'));
  const { matches, shape } = queryOf(new URLSearchParams([...parameters].filter(([key]) => !['deltas', 'conflate'].includes(key))));
  return { matches, shape, from, bookmarks: ['true', '1'].includes(get('allowWatchBookmarks')), timeout: whole('timeoutSeconds', get('timeoutSeconds') || '0') * 1_000 };
}

/** Holds what is asked of a version against the newest one, which is the only one that the mock has. */
function versionAsked(parameters: URLSearchParams, now: number): void {
  const version = parameters.get('resourceVersion') ?? '';
  const match = parameters.get('resourceVersionMatch') ?? '';
  if (!['', 'NotOlderThan', 'Exact'].includes(match)) throw new BadQuery(`resourceVersionMatch: ${JSON.stringify(match)} is not NotOlderThan or Exact`, 422);
  if (match !== '' && version === '') throw new BadQuery('resourceVersionMatch: is forbidden unless resourceVersion is provided', 422);
  if (match === 'Exact' && version === '0') throw new BadQuery('resourceVersionMatch: Exact is forbidden for resourceVersion 0', 422);
  if (parameters.get('sendInitialEvents')) throw new BadQuery('sendInitialEvents: is forbidden for list', 422);
  if (version === '') return;
  if (parameters.get('continue')) throw new BadQuery('resourceVersion: is not allowed when using continue');
  const asked = whole('resourceVersion', version);
  if (asked > now) throw new BadQuery(`Too large resource version: ${asked}, current: ${now}`, 504);
  if (match === 'Exact' && asked < now) throw new BadQuery(`The resourceVersion for the provided list is too old: ${asked}`, 410);
}

function queryOf(parameters: URLSearchParams): Query {
  const get = (key: string): string => parameters.get(key) ?? '';
  const labels = labelSelector(get('labelSelector'));
  const fields = fieldSelector(get('fieldSelector'));
  const search = get('search').toLowerCase();
  const deltas = get('deltas');
  if (deltas !== '' && deltas !== 'merge-patch') throw new BadQuery(`deltas: ${JSON.stringify(deltas)} is not merge-patch`);
  const by = get('countBy');
  return {
    matches: (object) => labels(object) && fields(object) && object.metadata.name.toLowerCase().includes(search),
    shape: shapeOf(get('fields')),
    deltas: deltas !== '',
    conflate: durationOf('conflate', get('conflate')),
    from: undefined,
    counts: parameters.has('countBy') ? { by: pathsOf('countBy', by, 2), limit: whole('limit', get('limit') || '0') } : undefined,
    page: undefined,
    compare: orderOf(get('sort')),
  };
}

/** What the two selectors select. */
export function selectsBy(parameters: URLSearchParams): (object: KubeObject) => boolean {
  const [labels, fields] = [labelSelector(parameters.get('labelSelector') ?? ''), fieldSelector(parameters.get('fieldSelector') ?? '')];
  return (object) => labels(object) && fields(object);
}

export function whole(key: string, text: string, least = 0, most = Number.MAX_SAFE_INTEGER): number {
  const number = Number(text);
  if (!/^\d+$/.test(text) || number < least || number > most) throw new BadQuery(`${key}: ${JSON.stringify(text)} is not a number from ${least} to ${most}`);
  return number;
}

const units: Readonly<Record<string, number>> = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 };

/** A duration in milliseconds; undefined: there is none. */
export function durationOf(key: string, text: string): number | undefined {
  if (text === '') return undefined;
  const parts = [...text.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h)/g)];
  if (parts.length === 0 || parts.map(([part]) => part).join('') !== text) throw new BadQuery(`${key}: ${JSON.stringify(text)} is not a duration such as 250ms`);
  return parts.reduce((sum, [, number, unit = '']) => sum + Number(number) * (units[unit] ?? 0), 0);
}

function pathsOf(key: string, text: string, most: number): Path[] {
  const paths = text.split(',').map(pathOf);
  if (paths.length > most) throw new BadQuery(`${key}: more than ${most} paths`);
  return paths;
}

/** Whether it is asked what objects are doing. */
export const asksStatus = (parameters: URLSearchParams): boolean => asking(parameters, /(^|[,\s-])\$status\b/) !== undefined;

/** The parameter that asks for one of the numbers that the gateway derives. */
export const asksNumbers = (parameters: URLSearchParams): string | undefined => asking(parameters, /(^|[,\s-])\$(ready|restarts|requests)\b/);

const asking = (parameters: URLSearchParams, path: RegExp): string | undefined => ['fields', 'fieldSelector', 'sort', 'countBy'].find((key) => path.test(parameters.get(key) ?? ''));

/** The keys of a path; a dot within a key is written `\.`. */
function pathOf(text: string): Path {
  const keys = text.trim().split(/(?<!\\)\./).map((key) => key.replaceAll('\\.', '.'));
  if (keys.includes('')) throw new BadQuery(`${JSON.stringify(text)} is not a path of an object`);
  return keys;
}

function valueAt(object: unknown, path: Path): unknown {
  let at = object;
  for (const key of path) at = at !== null && typeof at === 'object' && Object.hasOwn(at, key) ? (at as Record<string, unknown>)[key] : undefined;
  return at;
}

/** A value as selectors and counts compare it. */
function textAt(object: unknown, path: Path): string {
  const value = valueAt(object, path);
  if (value === undefined || value === null) return '';
  return typeof value === 'string' ? value : JSON.stringify(value);
}

function labelSelector(text: string): (object: KubeObject) => boolean {
  const terms = text.match(/(?:[^,(]|\([^)]*\))+/g) ?? [];
  const requirements = terms.map((term) => {
    const at = (object: KubeObject, key: string): string | undefined => (object.metadata.labels && Object.hasOwn(object.metadata.labels, key) ? object.metadata.labels[key] : undefined);
    const set = /^\s*([\w./-]+)\s+(in|notin)\s+\(([^)]*)\)\s*$/.exec(term);
    if (set) {
      const [, key = '', how, values = ''] = set;
      const one = values.split(',').map((value) => value.trim());
      return (object: KubeObject) => one.includes(at(object, key) ?? '\0') === (how === 'in');
    }
    const [, not, key = '', sign, value = ''] = /^\s*(!?)\s*([\w./-]+)\s*(?:(==?|!=)\s*([\w.-]*))?\s*$/.exec(term) ?? [];
    if (key === '') throw new BadQuery(`unable to parse labelSelector: ${JSON.stringify(term)}`);
    if (sign === undefined) return (object: KubeObject) => (at(object, key) === undefined) === (not === '!');
    return (object: KubeObject) => (at(object, key) === value) === (sign !== '!=');
  });
  return (object) => requirements.every((holds) => holds(object));
}

function fieldSelector(text: string): (object: KubeObject) => boolean {
  const terms = text === '' ? [] : text.split(/(?<!\\),/);
  const requirements = terms.map((term) => {
    const [, field = '', sign, value = ''] = /^(.*?)(==?|!=)(.*)$/.exec(term) ?? [];
    if (sign === undefined) throw new BadQuery(`unable to parse fieldSelector: ${JSON.stringify(term)}`);
    const [path, wanted] = [pathOf(field), value.replaceAll(/\\([\\,=])/g, '$1')];
    return (object: KubeObject) => (textAt(object, path) === wanted) === (sign !== '!=');
  });
  return (object) => requirements.every((holds) => holds(object));
}

const always = ['apiVersion', 'kind', 'metadata.name', 'metadata.namespace', 'metadata.uid', 'metadata.resourceVersion'];

/** The keys that are wanted of an object, with what is wanted below each; undefined: all of it. */
interface Wanted {
  readonly keys: Map<string, Wanted | undefined>;
}

function shapeOf(text: string): (object: KubeObject) => KubeObject {
  if (text === '') return (object) => object;
  const root: Wanted = { keys: new Map() };
  for (const path of [...text.split(/(?<!\\),/), ...always].map(pathOf)) {
    let at: Wanted | undefined = root;
    for (const [n, key] of path.entries()) {
      if (n === path.length - 1) at.keys.set(key, undefined);
      else if (!at.keys.has(key)) at.keys.set(key, { keys: new Map() });
      at = at.keys.get(key);
      if (at === undefined) break; // all of it is wanted
    }
  }
  const project = (value: unknown, wanted: Wanted | undefined): unknown => {
    if (wanted === undefined || value === null || typeof value !== 'object') return value;
    if (Array.isArray(value)) return value.map((element) => project(element, wanted));
    const members = Object.entries(value).filter(([key]) => wanted.keys.has(key));
    return Object.fromEntries(members.map(([key, member]) => [key, project(member, wanted.keys.get(key))]));
  };
  const asksFor$status = root.keys.has('$status');
  return (object) => ({ ...(project(object, root) as KubeObject), ...(asksFor$status && { $status: valueAt(object, ['$status']) }) });
}

/** By what of which sort values are compared; what is missing comes last in either direction. */
function classOf(value: unknown): readonly [number, number, string] {
  if (value === undefined || value === null) return [9, 0, ''];
  if (typeof value === 'boolean') return [1, Number(value), ''];
  if (typeof value === 'number') return [2, value, ''];
  if (typeof value === 'object') return [5, 0, JSON.stringify(value)];
  const text = typeof value === 'string' ? value : '';
  if (/^\d{4}-\d\d-\d\dT/.test(text) && !Number.isNaN(Date.parse(text))) return [3, Date.parse(text), ''];
  const [, number, unit = ''] = /^([+-]?\d+(?:\.\d+)?)(|[munkMGTPE]|[KMGTPE]i)$/.exec(text) ?? [];
  return number === undefined ? [4, 0, text] : [2, Number(number) * (scales[unit] ?? 1), ''];
}

const scales: Readonly<Record<string, number>> = {
  n: 1e-9, u: 1e-6, m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

const byText = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

function orderOf(text: string): Query['compare'] {
  const terms = (text === '' ? [] : text.split(',')).map((term) => {
    const [, minus, path = ''] = /^\s*(-?)(.*)$/.exec(term) ?? [];
    return { path: pathOf(path), sign: minus === '-' ? -1 : 1 };
  });
  return (a, b) => {
    for (const { path, sign } of terms) {
      const [one, other] = [classOf(valueAt(a, path)), classOf(valueAt(b, path))];
      if (one[0] !== other[0] && (one[0] === 9 || other[0] === 9)) return one[0] - other[0];
      const by = one[0] - other[0] || one[1] - other[1] || byText(one[2], other[2]);
      if (by !== 0) return sign * by;
    }
    return byText(a.metadata.namespace ?? '', b.metadata.namespace ?? '') || byText(a.metadata.name, b.metadata.name);
  };
}

/** What `counts` says of some objects: the most frequent values first. */
export function countsOf(objects: readonly KubeObject[], { by, limit }: NonNullable<Query['counts']>): readonly unknown[] {
  const groups = new Map<string, { readonly values: readonly string[]; count: number }>();
  for (const object of objects) {
    const values = by.map((path) => textAt(object, path));
    const key = JSON.stringify(values);
    const group = groups.get(key) ?? { values, count: 0 };
    group.count++;
    groups.set(key, group);
  }
  const all = [...groups.values()].sort((a, b) => b.count - a.count || byText(a.values[0] ?? '', b.values[0] ?? '') || byText(a.values[1] ?? '', b.values[1] ?? ''));
  return all.slice(0, limit || all.length).map(({ values, count }) => (by.length === 1 ? { value: values[0], count } : { values, count }));
}

/** The merge patch (RFC 7386) from one state to the next; undefined if it cannot be exact, since null means absence. */
export function patchOf(before: unknown, after: unknown): unknown {
  if (!isObject(before) || !isObject(after)) return JSON.stringify(after).includes('null') ? undefined : after;
  const patch: Record<string, unknown> = {};
  for (const key of Object.keys(before)) if (!Object.hasOwn(after, key)) patch[key] = null;
  for (const [key, value] of Object.entries(after)) {
    if (JSON.stringify(before[key]) === JSON.stringify(value)) continue;
    const change = patchOf(before[key], value);
    if (change === undefined) return undefined;
    patch[key] = change;
  }
  return patch;
}

const isObject = (value: unknown): value is Record<string, unknown> => value !== null && typeof value === 'object' && !Array.isArray(value);

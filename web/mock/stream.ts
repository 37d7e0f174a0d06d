// One event stream of the mock, by the rules of the wire contract: ids, replay, reset, snapshot.

import type { KubeObject } from '@kubecast/sdk';
import { isOf, type Change, type MockCluster } from './cluster.ts';
import type { MockResponse } from './memory.ts';
import { countsOf, patchOf, type Query } from './query.ts';
import type { MockUser } from './rights.ts';
import { asBefore } from './status.ts';
import type { Entry, MockLog } from './told.ts';

export interface Watch {
  /** Empty on a single stream. */
  readonly name: string;
  /** Of the kind, as `jobs.batch`; undefined of what is told in place of objects. */
  readonly id?: string | undefined;
  readonly resource: string;
  /** Of the kind; undefined of what is told in place of objects. */
  readonly group?: string | undefined;
  readonly namespace: string | undefined;
  /** The one object of that name; undefined: all. */
  readonly object?: string | undefined;
  /** What is asked of objects; undefined of what is told in place of these. */
  readonly query?: Query | undefined;
  /** The namespaces that may be seen of all of them; undefined: every one. */
  visible: readonly string[] | undefined;
  /** Undefined while a snapshot is owed or under way. */
  version: number | undefined;
  /** What is told in place of objects, and how much of it at first. */
  readonly told?: ToldWatch | undefined;
}

export interface ToldWatch {
  readonly log: MockLog;
  /** So many come first. */
  readonly limit: number;
  /** Which entries; undefined: each. */
  readonly matches?: ((entry: Entry) => boolean) | undefined;
  /** What the caller is told of an entry, if not all of it. */
  readonly shape?: ((data: object) => object) | undefined;
  /** What comes first without a position; undefined: the newest of the log. */
  readonly first?: (() => readonly Pick<Entry, 'type' | 'data'>[]) | undefined;
  /** What `synced` says of that; undefined: its number, and how many. */
  readonly synced?: ((told: readonly Pick<Entry, 'type' | 'data'>[]) => object) | undefined;
  readonly bookmark?: object | undefined;
  /** Whether a user may still see something of it; undefined: each may. */
  readonly allows?: ((user: MockUser) => boolean) | undefined;
  /** How its part of an event id begins, on a stream of its own. */
  readonly mark: 'h-' | 'n-' | 'l-p' | '';
  /** Nothing follows what is there. */
  readonly ends?: boolean | undefined;
  /** A whole is told at most once in so many milliseconds. */
  readonly conflate?: number | undefined;
}

export interface StreamOptions {
  readonly retry: number;
  readonly heartbeat: number;
  /** Returns how much of a frame still gets through before the connection breaks; undefined: all is well. */
  readonly sabotage: ((frame: string) => number | undefined) | undefined;
  /** Whose stream it is. */
  readonly token?: string | undefined;
  /** When the token ends, in milliseconds since the epoch. */
  readonly expiresAt?: number | undefined;
}

export class MockStream {
  readonly watches: readonly Watch[];
  readonly #cluster: MockCluster;
  readonly #epoch: string;
  readonly #response: MockResponse;
  readonly #options: StreamOptions;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  readonly #stops: (() => void)[] = [];
  /** What is told later of a watch, since it conflates, or tells a whole. */
  readonly #later = new Map<Watch, ReturnType<typeof setTimeout>>();
  /** The modifications that are held back, by uid, with the states that the client has. */
  readonly #held = new Map<Watch, Map<string, { readonly base: KubeObject; object: KubeObject }>>();
  /** What a client has of counts or of a page. */
  readonly #shown = new Map<Watch, { counts: string; page: string; objects: Map<string, KubeObject> }>();
  /** When a whole was told last. */
  readonly #told = new Map<Watch, number>();
  /** Part of each position: with other permissions it is none. */
  #sight: string;
  #over = false;
  #breaks = false;

  constructor(cluster: MockCluster, epoch: string, sight: string, watches: readonly Watch[], response: MockResponse, options: StreamOptions) {
    this.#cluster = cluster;
    this.#epoch = epoch;
    this.#sight = sight;
    this.#response = response;
    this.#options = options;
    this.watches = watches;
    response.writeHead(200, {
      'Content-Type': 'text/event-stream',
      'Cache-Control': 'no-store',
      'X-Accel-Buffering': 'no',
    });
    response.write(`: kubecast mock\n\nretry: ${options.retry}\n\n`);
    this.#heartbeat = setInterval(() => this.#write(':\n\n'), options.heartbeat);
    cluster.watchers.add(this.#onChange);
    for (const watch of watches) {
      const onEntry = (entry: Entry): void => this.#tellEntry(watch, entry);
      watch.told?.log.watchers.add(onEntry);
      this.#stops.push(() => watch.told?.log.watchers.delete(onEntry));
    }
    response.on('close', () => this.stop());
    if (options.expiresAt !== undefined) this.#expires(options.expiresAt);
  }

  get token(): string | undefined {
    return this.#options.token;
  }

  /** Ends with its token, and says so a minute ahead, or when a third of a shorter time is left. */
  #expires(at: number): void {
    const left = at - Date.now();
    if (left > 2 ** 31 - 1) return; // no timer is as long
    const expiring = setTimeout(() => this.send(undefined, 'expiring', { at: new Date(at).toISOString() }), Math.max(left - 60_000, (left * 2) / 3));
    const over = setTimeout(() => this.goodbye('expired'), left);
    this.#stops.push(() => clearTimeout(expiring), () => clearTimeout(over));
  }

  /** Delivers what a client at `position` has missed. */
  begin(position: string): void {
    for (const watch of this.watches) {
      if (watch.visible) this.send(watch, 'narrowed', { namespaces: watch.visible });
    }
    for (const watch of this.watches) {
      const version = versionOf(position, this.#epoch + this.#sight, watch.name);
      const from = watch.query?.from;
      if (watch.query?.counts ?? watch.query?.page) this.#begins(watch, version === this.#cluster.version);
      else if (version === undefined && from !== undefined) this.#beginsBehind(watch, from === 'now' ? this.#cluster.version : from);
      else if (version === undefined || watch.told?.log.whole) this.#snapshot(watch);
      else if (typeof version === 'string') this.reset(watch, version);
      else if (version < floorOf(watch, this.#cluster)) this.reset(watch, 'expired');
      else if (version > (watch.told?.log.seq ?? this.#cluster.version)) this.reset(watch, 'ahead');
      else this.#replay(watch, version);
    }
    for (const watch of position === '' ? [] : this.watches) this.#bookmark(watch);
    if (this.watches.every(({ told }) => told?.ends)) this.goodbye('gone');
  }

  #bookmark(watch: Watch): void {
    const { told, version } = watch;
    if (version === undefined || told?.log.whole) return;
    this.send(watch, 'bookmark', told ? (told.bookmark ?? { seq: String(version) }) : { resourceVersion: String(version) });
  }

  /** The caller's permissions change; undefined: everything may be seen. `kinds`: those that may be seen at all, if not each. */
  see(namespaces: readonly string[] | undefined, kinds?: readonly string[]): void {
    if ((namespaces?.length === 0 && this.watches.some((watch) => !isInbox(watch))) || this.watches.some(({ namespace }) => namespace !== undefined && namespaces?.includes(namespace) === false)) {
      this.goodbye('revoked');
      return;
    }
    this.#sight = changing;
    const what = namespaces ? { namespaces } : { all: true, namespaces: [] };
    for (const watch of this.watches) {
      if (watch.namespace || watch.told || watch.resource === 'namespaces') continue;
      const before = this.#list(watch);
      watch.visible = namespaces;
      const now = this.#list(watch);
      const lost = before.filter((object) => !now.includes(object));
      const found = now.filter((object) => !before.includes(object));
      if (lost.length > 0) this.send(watch, 'narrowed', what);
      if (watch.query?.counts ?? watch.query?.page) {
        if (lost.length === 0) this.send(watch, 'widened', what);
        const shown = this.#shown.get(watch);
        if (shown) shown.counts = shown.page = '';
        this.#whole(watch); // anew, also if it is the same
        continue;
      }
      for (const { apiVersion, kind, metadata } of lost) {
        const { name, namespace, uid, resourceVersion } = metadata;
        this.send(watch, 'deleted', { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } });
      }
      if (found.length > 0 || lost.length === 0) this.send(watch, 'widened', what);
      for (const object of found) this.send(watch, 'added', object);
    }
    this.#sight = sightOf(namespaces, kinds);
    // Nobody is told which of their notifications they may not see any more: all others are told anew.
    for (const watch of this.watches) {
      if (isInbox(watch)) this.reset(watch, 'epoch');
      else this.#bookmark(watch);
    }
  }

  reset(watch: Watch, reason: string): void {
    watch.version = undefined;
    this.send(watch, 'reset', { reason });
    this.#snapshot(watch);
  }

  send(watch: Watch | undefined, type: string, data: unknown): void {
    const event = watch?.name ? `${watch.name}.${type}` : type;
    this.#write(`event: ${event}\nid: ${this.#id()}\ndata: ${JSON.stringify(data)}\n\n`);
  }

  /** The gateway's own watch is lost, or is back. */
  freshness(type: 'stale' | 'live', data: object): void {
    for (const watch of this.watches) this.send(watch, type, data);
  }

  goodbye(reason: string, id = this.#id(), retry?: number): void {
    if (retry !== undefined) this.#write(`retry: ${retry}\n\n`);
    this.#write(`event: goodbye\nid: ${id}\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.stop();
    this.#response.end();
  }

  /** As when the process is killed. */
  cut(): void {
    this.stop();
    this.#response.socket?.destroy();
  }

  /** Breaks in the middle of the next frame. */
  cutWithinNext(): void {
    this.#breaks = true;
  }

  /** As when the network between is gone: nothing arrives any more, and nobody is told. */
  stop(): void {
    this.#over = true;
    clearInterval(this.#heartbeat);
    this.#cluster.watchers.delete(this.#onChange);
    for (const stop of this.#stops) stop();
    for (const later of this.#later.values()) clearTimeout(later);
  }

  #beginsBehind(watch: Watch, version: number): void {
    if (version < this.#cluster.floor) this.reset(watch, 'expired');
    else if (version > this.#cluster.version) this.reset(watch, 'ahead');
    else this.#replay(watch, version);
  }

  /** Counts and pages say all at once. @param known the client has it already */
  #begins(watch: Watch, known: boolean): void {
    this.#shown.set(watch, { counts: known ? JSON.stringify(this.#counts(watch)) : '', page: '', objects: new Map() });
    this.#whole(watch);
  }

  #counts(watch: Watch): readonly unknown[] {
    return watch.query?.counts ? countsOf(this.#list(watch), watch.query.counts) : [];
  }

  /** Tells counts, or a page, as far as the client does not have it. */
  #whole(watch: Watch): void {
    const { query } = watch;
    const shown = this.#shown.get(watch);
    if (!query || !shown) return;
    const resourceVersion = String(this.#cluster.version);
    if (query.counts) {
      const counts = this.#counts(watch);
      const same = shown.counts === JSON.stringify(counts);
      shown.counts = JSON.stringify(counts);
      watch.version = this.#cluster.version;
      if (!same) this.send(watch, 'counts', { counts, resourceVersion });
      return;
    }
    const { limit, offset } = query.page ?? { limit: 0, offset: 0 };
    const all = this.#list(watch).sort(query.compare);
    const now = all.slice(offset, offset + limit);
    const before = shown.objects;
    shown.objects = new Map(now.map((object) => [object.metadata.uid, object]));
    for (const [uid, gone] of before) {
      if (shown.objects.has(uid)) continue;
      const moved = all.some(({ metadata }) => metadata.uid === uid);
      const { name, namespace, resourceVersion: last } = gone.metadata;
      this.send(watch, 'deleted', { apiVersion: gone.apiVersion, kind: gone.kind, metadata: { name, namespace, uid, resourceVersion: last }, ...(moved && { reason: 'moved' }) });
    }
    for (const object of now) {
      const had = before.get(object.metadata.uid);
      if (!had) this.send(watch, 'added', query.shape(object));
      else if (had !== object) this.#modified(watch, had, object);
    }
    const page = { uids: now.map(({ metadata }) => metadata.uid), offset, total: all.length };
    const same = shown.page === JSON.stringify(page);
    shown.page = JSON.stringify(page);
    watch.version = this.#cluster.version;
    if (!same) this.send(watch, 'page', { ...page, resourceVersion });
  }

  #modified(watch: Watch, base: KubeObject, object: KubeObject): void {
    const { uid, resourceVersion } = object.metadata;
    const [before, after] = [watch.query?.shape(base) ?? base, watch.query?.shape(object) ?? object];
    const patch = watch.query?.deltas ? patchOf({ ...before, metadata: { ...before.metadata, resourceVersion } }, after) : undefined;
    if (patch === undefined) this.send(watch, 'modified', after);
    else this.send(watch, 'patched', { uid, resourceVersion, patch });
  }

  /** Calls once, after so many milliseconds. */
  #soon(watch: Watch, milliseconds: number, tell: () => void): void {
    if (this.#later.has(watch)) return;
    const later = setTimeout(() => {
      this.#later.delete(watch);
      tell();
    }, milliseconds);
    this.#later.set(watch, later);
  }

  /** Holds a modification back, so that the latest of several is told. */
  #hold(watch: Watch, base: KubeObject, object: KubeObject, conflate: number): void {
    const held = this.#held.get(watch) ?? new Map<string, { base: KubeObject; object: KubeObject }>();
    this.#held.set(watch, held.set(object.metadata.uid, { base: held.get(object.metadata.uid)?.base ?? base, object }));
    this.#soon(watch, conflate, () => {
      this.#held.delete(watch);
      watch.version = this.#cluster.version;
      for (const { base: had, object: latest } of held.values()) this.#modified(watch, had, latest);
    });
  }

  #snapshot(watch: Watch): void {
    if (watch.told) {
      const { log, limit, matches, shape = (data: object) => data } = watch.told;
      const newest = watch.told.first?.() ?? log.newest(limit, matches);
      for (const { type, data } of newest) this.send(watch, type, shape(data));
      watch.version = log.seq;
      if (log.whole) this.#told.set(watch, performance.now());
      else this.send(watch, 'synced', watch.told.synced?.(newest) ?? { seq: String(log.seq), count: newest.length, ...log.synced() });
      return;
    }
    const objects = this.#list(watch);
    for (const object of objects) this.send(watch, 'added', watch.query?.shape(object) ?? object);
    watch.version = this.#cluster.version;
    this.send(watch, 'synced', { resourceVersion: String(watch.version), count: objects.length });
  }

  #list(watch: Watch): KubeObject[] {
    return this.#cluster.list(watch.resource, watch.group).filter((object) => matches(watch, object));
  }

  #replay(watch: Watch, version: number): void {
    watch.version = version;
    for (const entry of watch.told?.log.entries ?? []) {
      if (entry.seq > version) this.#tellEntry(watch, entry);
    }
    for (const change of watch.told ? [] : this.#cluster.log) {
      if (change.version > version) this.#tell(watch, change);
    }
  }

  readonly #onChange = (change: Change): void => {
    for (const watch of this.watches) this.#tell(watch, change);
  };

  #tell(watch: Watch, change: Change): void {
    const { version, resource, object, before, how } = change;
    if (watch.told || resource !== watch.resource || !isOf(object, watch.group ?? '')) return;
    if (this.#shown.has(watch)) {
      this.#soon(watch, watch.query?.conflate ?? (watch.query?.page ? 100 : 250), () => this.#whole(watch));
      return;
    }
    const was = before !== undefined && matches(watch, before);
    const is = how !== 'deleted' && matches(watch, object);
    if (watch.version === undefined || (!was && !is)) return;
    const held = this.#held.get(watch);
    if (was && is && watch.query?.conflate) {
      this.#hold(watch, before, object, watch.query.conflate);
      return;
    }
    held?.delete(object.metadata.uid);
    // While something is held back, a position says nothing of what came after it.
    if (!held) watch.version = version;
    if (was && is) this.#modified(watch, before, object);
    else if (is) this.send(watch, 'added', watch.query?.shape(object) ?? object);
    else this.send(watch, 'deleted', this.#gone(watch, before ?? object, String(version)));
  }

  /** An object as it last matched, with the version at which it ceased to. */
  #gone(watch: Watch, object: KubeObject, resourceVersion: string): KubeObject {
    const gone = asBefore(object, { ...object.metadata, resourceVersion });
    return watch.query?.shape(gone) ?? gone;
  }

  #tellEntry(watch: Watch, entry: Entry): void {
    const { log, matches, shape = (data: object) => data, conflate = 0 } = watch.told ?? {};
    if (watch.version === undefined) return;
    watch.version = entry.seq;
    if (matches?.(entry) === false) return;
    const owed = (this.#told.get(watch) ?? -Infinity) + conflate - performance.now();
    if (!log?.whole || owed <= 0) {
      this.#told.set(watch, performance.now());
      this.send(watch, entry.type, shape(entry.data));
    } else this.#soon(watch, owed, () => log.entries.slice(-1).forEach((last) => this.#tellEntry(watch, last)));
  }

  #id(): string {
    const [first] = this.watches;
    const epoch = this.#epoch + this.#sight;
    if (first?.name === '') return `${epoch}.${first.told?.mark ?? ''}${first.version ?? 0}`;
    const versions = this.watches.filter((watch) => watch.version !== undefined && !watch.told?.log.whole);
    return [epoch, ...versions.map(({ name, told, version }) => `${name}-${told?.mark === 'l-p' ? 'p' : ''}${version}`)].join('.');
  }

  #write(frame: string): void {
    if (this.#over) return;
    const through = this.#breaks ? Math.ceil(frame.length / 2) : this.#options.sabotage?.(frame);
    if (through === undefined) {
      this.#response.write(frame);
      return;
    }
    this.stop();
    this.#response.write(frame.slice(0, through), () => this.#response.socket?.destroy());
  }
}

/** What a position says of its permissions while a client is being told of others: it is never resumed from. */
const changing = 'x';

/** What a position says of the permissions that it was given with. */
export const sightOf = (namespaces: readonly string[] | undefined, kinds?: readonly string[]): string =>
  [namespaces, kinds].map((names, n) => names && ['', ...names].map((name) => `${'sk'[n]}${name.replaceAll(/[^a-z0-9]/g, '')}`).join('')).join('');

const floorOf = ({ told }: Watch, cluster: MockCluster): number => told?.log.floor ?? cluster.floor;

const isInbox = ({ told }: Watch): boolean => told?.mark === 'n-';

function matches(watch: Watch, object: KubeObject): boolean {
  return isBelow(watch, object) && (watch.query?.matches(object) ?? true);
}

function isBelow({ namespace, object, visible }: Watch, { metadata }: KubeObject): boolean {
  if (object !== undefined && metadata.name !== object) return false;
  if (namespace !== undefined) return metadata.namespace === namespace;
  return visible === undefined || visible.includes(metadata.namespace ?? '');
}

/** Undefined: no position, so a snapshot; a text: the reason of a reset. */
function versionOf(position: string, epoch: string, name: string): number | 'unreadable' | 'epoch' | undefined {
  if (position === '') return undefined;
  const [first, ...rest] = position.split('.');
  if (!/^[a-z0-9]+(\.([a-z][a-z0-9]*-)?p?\d+)*$/.test(position)) return 'unreadable';
  if (first !== epoch) return 'epoch';
  for (const part of rest) {
    const [, watch = '', version] = /^(?:([a-z][a-z0-9]*)-)?p?(\d+)$/.exec(part) ?? [];
    if (name === '' || watch === name) return Number(version) || undefined;
  }
  return undefined;
}

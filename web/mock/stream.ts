// One event stream of the mock, by the rules of the wire contract: ids, replay, reset, snapshot.

import type { KubeObject } from '@kubecast/sdk';
import type { Change, MockCluster } from './cluster.ts';
import type { MockResponse } from './memory.ts';
import type { Entry, MockLog } from './told.ts';

export interface Watch {
  /** Empty on a single stream. */
  readonly name: string;
  readonly resource: string;
  readonly namespace: string | undefined;
  /** The namespaces that may be seen of all of them; undefined: every one. */
  visible: readonly string[] | undefined;
  /** Undefined while a snapshot is owed or under way. */
  version: number | undefined;
  /** What is told in place of objects, and how much of it at first. */
  readonly told?: { readonly log: MockLog; readonly limit: number } | undefined;
}

export interface StreamOptions {
  readonly retry: number;
  readonly heartbeat: number;
  /** Returns how much of a frame still gets through before the connection breaks; undefined: all is well. */
  readonly sabotage: ((frame: string) => number | undefined) | undefined;
}

export class MockStream {
  readonly watches: readonly Watch[];
  readonly #cluster: MockCluster;
  readonly #epoch: string;
  readonly #response: MockResponse;
  readonly #options: StreamOptions;
  readonly #heartbeat: ReturnType<typeof setInterval>;
  readonly #stops: (() => void)[] = [];
  /** Part of each position: with other permissions it is none. */
  #sight: string;
  #over = false;

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
  }

  /** Delivers what a client at `position` has missed. */
  begin(position: string): void {
    for (const watch of this.watches) {
      if (watch.visible) this.send(watch, 'narrowed', { namespaces: watch.visible });
    }
    for (const watch of this.watches) {
      const version = versionOf(position, this.#epoch + this.#sight, watch.name);
      if (version === undefined || watch.told?.log.whole) this.#snapshot(watch);
      else if (typeof version === 'string') this.reset(watch, version);
      else if (version < floorOf(watch, this.#cluster)) this.reset(watch, 'expired');
      else if (version > (watch.told?.log.seq ?? this.#cluster.version)) this.reset(watch, 'ahead');
      else this.#replay(watch, version);
    }
    if (position === '') return;
    for (const watch of this.watches) {
      if (watch.version !== undefined && !watch.told?.log.whole) this.send(watch, 'bookmark', { resourceVersion: String(watch.version) });
    }
  }

  /** The caller's permissions change; undefined: everything may be seen. */
  see(namespaces: readonly string[] | undefined): void {
    if (namespaces?.length === 0) {
      this.goodbye('revoked');
      return;
    }
    this.#sight = changing;
    const what = namespaces ? { namespaces } : { all: true, namespaces: [] };
    for (const watch of this.watches) {
      if (watch.namespace || watch.resource === 'namespaces') continue;
      const before = this.#list(watch);
      watch.visible = namespaces;
      const now = this.#list(watch);
      const lost = before.filter((object) => !now.includes(object));
      const found = now.filter((object) => !before.includes(object));
      if (lost.length > 0) this.send(watch, 'narrowed', what);
      for (const { apiVersion, kind, metadata } of lost) {
        const { name, namespace, uid, resourceVersion } = metadata;
        this.send(watch, 'deleted', { apiVersion, kind, metadata: { name, namespace, uid, resourceVersion } });
      }
      if (found.length > 0 || lost.length === 0) this.send(watch, 'widened', what);
      for (const object of found) this.send(watch, 'added', object);
    }
    this.#sight = sightOf(namespaces);
    for (const watch of this.watches) {
      if (watch.version !== undefined) this.send(watch, 'bookmark', { resourceVersion: String(watch.version) });
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

  goodbye(reason: string, id = this.#id()): void {
    this.#write(`event: goodbye\nid: ${id}\ndata: ${JSON.stringify({ reason })}\n\n`);
    this.stop();
    this.#response.end();
  }

  /** As when the process is killed. */
  cut(): void {
    this.stop();
    this.#response.socket?.destroy();
  }

  /** As when the network between is gone: nothing arrives any more, and nobody is told. */
  stop(): void {
    this.#over = true;
    clearInterval(this.#heartbeat);
    this.#cluster.watchers.delete(this.#onChange);
    for (const stop of this.#stops) stop();
  }

  #snapshot(watch: Watch): void {
    if (watch.told) {
      const { log, limit } = watch.told;
      const newest = log.newest(limit);
      for (const { type, data } of newest) this.send(watch, type, data);
      watch.version = log.seq;
      if (!log.whole) this.send(watch, 'synced', { seq: String(log.seq), count: newest.length });
      return;
    }
    const objects = this.#list(watch);
    for (const object of objects) this.send(watch, 'added', object);
    watch.version = this.#cluster.version;
    this.send(watch, 'synced', { resourceVersion: String(watch.version), count: objects.length });
  }

  #list(watch: Watch): KubeObject[] {
    return this.#cluster.list(watch.resource).filter((object) => matches(watch, object));
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
    if (watch.version === undefined || change.resource !== watch.resource || !matches(watch, change.object)) return;
    watch.version = change.version;
    this.send(watch, change.how, change.object);
  }

  #tellEntry(watch: Watch, { seq, type, data }: Entry): void {
    if (watch.version === undefined) return;
    watch.version = seq;
    this.send(watch, type, data);
  }

  #id(): string {
    const [first] = this.watches;
    const epoch = this.#epoch + this.#sight;
    if (first?.name === '') return `${epoch}.${first.version ?? 0}`;
    const versions = this.watches.filter((watch) => watch.version !== undefined && !watch.told?.log.whole);
    return [epoch, ...versions.map((watch) => `${watch.name}-${watch.version}`)].join('.');
  }

  #write(frame: string): void {
    if (this.#over) return;
    const through = this.#options.sabotage?.(frame);
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
export const sightOf = (namespaces: readonly string[] | undefined): string => namespaces?.map((name) => `s${name.replaceAll(/[^a-z0-9]/g, '')}`).join('') ?? '';

const floorOf = ({ told }: Watch, cluster: MockCluster): number => told?.log.floor ?? cluster.floor;

function matches({ namespace, visible }: Watch, { metadata }: KubeObject): boolean {
  if (namespace !== undefined) return metadata.namespace === namespace;
  return visible === undefined || visible.includes(metadata.namespace ?? '');
}

/** Undefined: no position, so a snapshot; a text: the reason of a reset. */
function versionOf(position: string, epoch: string, name: string): number | 'unreadable' | 'epoch' | undefined {
  if (position === '') return undefined;
  const [first, ...rest] = position.split('.');
  if (!/^[a-z0-9]+(\.([a-z][a-z0-9]*-)?\d+)*$/.test(position)) return 'unreadable';
  if (first !== epoch) return 'epoch';
  for (const part of rest) {
    const [watch, version] = name === '' ? ['', part] : part.split('-');
    if (watch === name) return Number(version) || undefined;
  }
  return undefined;
}

// Gives a page what is on disk, and writes what has become of it: now and then, what has changed, by one page of a user's at a time.

import { WatchedCollection, type Snapshot } from '../collection.ts';
import type { StreamEvent } from '../events.ts';
import { old } from '../hydrate.ts';
import type { Entry, Kubecast, WatchSnapshot } from '../kubecast.ts';
import type { KubeObject } from '../object.ts';
import { isFinal, type Trouble } from '../state.ts';
import type { Sink } from '../store.ts';
import { Disk, type Change, type Head, type Owner, type WatchOnDisk } from './disk.ts';
import type { Offline, OfflineEnd, OfflineOptions } from './index.ts';
import { plan, type Segment } from './segments.ts';

/** How long what is on disk is watched before anybody looks at it, in milliseconds: parts of a page may come to life later. */
const patience = 5_000;
/** Up to how many watches of a page, of which a stream takes 32, what is on disk is watched before anybody looks at it. */
const mostWatches = 16;
/** For how long texts are made at a time, in milliseconds. */
const slice = 8;
/** How many writings may fail one after the other. */
const mostFailures = 3;
const day = 24 * 3_600_000;

const random = (): string => Math.random().toString(36).slice(2);
const secret = /^(\/clusters\/[^/]+)?\/api\/v1\/(namespaces\/[^/]+\/)?(secrets|configmaps)\b/;
const none = { watch: '', id: '' } as const;

/** Nothing of an owner stays on disk, also of what pages that are open would write. */
export async function removed(owner: Owner): Promise<void> {
  if (!(globalThis as { readonly indexedDB?: unknown }).indexedDB) return; // nor is there anything
  const disk = await Disk.open(owner, () => undefined);
  await disk.clear(random()).finally(() => disk.close());
}

/** What is known at one moment, and up to where. */
interface Taken {
  readonly position: string;
  readonly names: number;
  readonly asOf: number;
  readonly watches: readonly TakenWatch[];
  /** For which there is no room, by what their rows took. */
  readonly left: readonly { readonly path: string; readonly width: number }[];
}

interface TakenWatch {
  readonly entry: Entry;
  readonly rows: readonly unknown[];
  readonly objects: boolean;
  readonly snapshot: Snapshot<unknown>;
  readonly visible: string;
}

/** The same, and what is to be written for it. */
interface Made extends TakenWatch {
  readonly segments: readonly Segment[];
  readonly change: Change;
}

const sizeOf = (segments: readonly Segment[]): number => segments.reduce((sum, { length }) => sum + length, 0);

type Listen = (type: string, listener: () => void, options: { signal: AbortSignal }) => void;
interface Page {
  readonly visibilityState: string;
  addEventListener: Listen;
}

export class Keeper implements Offline {
  end: OfflineEnd | undefined;
  readonly #kc: Kubecast;
  readonly #disk: Disk;
  readonly #keep: (path: string) => boolean;
  readonly #maxAge: number;
  readonly #maxSize: number;
  readonly #every: number;
  /** Of this page among those that write. */
  readonly #writer = random();
  readonly #over = new AbortController();
  /** What this page knows to be on disk, if nobody else has written since. */
  #head: Head | undefined;
  readonly #segments = new Map<string, readonly Segment[]>();
  /** What of a watch was written last. */
  readonly #written = new Map<string, Snapshot<unknown>>();
  /** Of watches for which there was no room: the characters that a row of them took. */
  readonly #wide = new Map<string, number>();
  #cleared = '';
  /** Another one each time that what was taken before must not be written any more. */
  #era = 0;
  /** The gateway has told this page something, so that whoever looks at it may see it. */
  #proven = false;
  /** What restricts each watch, by its name, as it was told. */
  readonly #visible = new Map<string, string>();
  /** The names of those whose rows are of before that. Objects are told one by one as deleted; what is told as a whole comes behind it. */
  readonly #outdated = new Set<string>();
  #saving: Promise<void> = Promise.resolve();
  #failures = 0;
  #denied: Trouble | undefined;

  constructor(kc: Kubecast, disk: Disk, { keep, maxAge, maxSize, every }: OfflineOptions) {
    this.#kc = kc;
    this.#disk = disk;
    this.#keep = keep ?? ((path) => !secret.test(path));
    this.#maxAge = maxAge ?? day;
    this.#maxSize = maxSize ?? 32 * 2 ** 20;
    this.#every = every ?? 10_000;
  }

  async begin(): Promise<void> {
    // The rest of the objects is read when somebody looks at it.
    const { head, cleared, watches, texts } = await this.#disk.begin(Date.now(), random(), (there) =>
      there.watches.filter((watch) => this.#isFresh(watch) && (watch.name !== undefined || !watch.objects)));
    this.#cleared = cleared;
    if (texts) this.#head = head;
    else await this.#purge();
    this.#restore(head?.position ?? '', head?.names ?? 0, new Map(texts && watches.map((watch, n) => [watch.path, { watch, texts: texts[n] ?? [] }])));
    this.#attend();
  }

  save(): Promise<void> {
    return this.#queue(true);
  }

  async clear(): Promise<void> {
    this.end ??= 'cleared';
    this.#forget(undefined);
    // Another page may have written since this one has ended.
    const gone = this.#over.signal.aborted || (await this.#disk.clear(random()).then(() => false, () => true));
    this.#stop();
    if (gone) await removed(this.#disk.owner);
  }

  close(): void {
    this.end ??= 'closed';
    this.#stop();
  }

  #stop(): void {
    this.#era++;
    this.#over.abort();
    this.#disk.close();
  }

  #restore(position: string, names: number, found: Map<string, { readonly watch: WatchOnDisk; readonly texts: readonly string[] }>): void {
    const kc = this.#kc;
    const named = [...found.values()].map(({ watch }) => watch).filter(({ name }) => name !== undefined);
    // What is watched already begins from nothing, and so does the stream.
    const begins = kc.inside.entries.size === 0 && named.length > 0;
    let begun = kc.inside.client !== undefined;
    kc.restore({
      names,
      nameOf: (path) => (begins && !begun ? found.get(path)?.watch.name : undefined),
      begin: () => {
        if (begun) return undefined;
        const { entries } = kc.inside;
        for (const { path, objects } of begins ? named : []) {
          if (!objects) continue; // a page or counts, whose sinks their readers bring
          if (!entries.has(path) && entries.size >= mostWatches) continue; // nobody looks at it, and the rest of the page wants room
          const leave = kc.follow({ path, objects, sink: (changed) => new WatchedCollection<KubeObject>(changed) }).subscribe(() => undefined);
          setTimeout(leave, patience);
        }
        begun = true;
        found.clear(); // which nobody reads any more
        return begins ? { lastEventId: position, asOf: named[0]?.asOf } : undefined;
      },
      fill: (path, sink) => {
        const here = begun ? undefined : found.get(path);
        found.delete(path); // whoever looks at it again is told what has become of it
        if (here) return this.#fill(sink, here.watch, here.texts, begins && here.watch.name !== undefined);
        void this.#fillLate(path, sink).catch(() => undefined);
        return undefined;
      },
      heard: (event) => this.#hear(event),
    });
  }

  #isFresh({ path, asOf }: WatchOnDisk): boolean {
    return this.#keep(path) && Math.abs(Date.now() - asOf) < this.#maxAge; // its clock may have been wrong
  }

  /** `exact`: the position is of it. Else it is shown until all is told anew. */
  #fill(sink: Sink<unknown>, watch: WatchOnDisk, texts: readonly string[], exact: boolean): WatchSnapshot<unknown> {
    const segments = watch.segments.map(([n, length], at): Segment => ({ n, length, rows: JSON.parse(texts[at] ?? '[]') as unknown[] }));
    this.#segments.set(watch.path, segments);
    if (watch.namespaces && exact) sink.apply({ ...none, type: 'narrowed', namespaces: watch.namespaces, names: {} });
    for (const { rows } of segments) for (const row of rows) sink.apply(watch.objects ? { ...none, type: 'added', object: row as KubeObject } : (row as StreamEvent));
    if (watch.objects) sink.apply({ ...none, type: 'synced', resourceVersion: '' });
    if (!exact && watch.objects) sink.apply({ ...none, type: 'reset', reason: 'offline', data: {} });
    else if (!exact) sink.left();
    sink.commit();
    return old(sink.getSnapshot(), watch.asOf);
  }

  /** Of what somebody begins to look at while the page runs. It is shown unless the gateway was faster. */
  async #fillLate(path: string, sink: Sink<unknown>): Promise<void> {
    if (this.end || !this.#keep(path)) return;
    const era = this.#era;
    const found = await this.#disk.look(path);
    const { entries, store } = this.#kc.inside;
    const entry = entries.get(path);
    if (!found?.watch.objects || era !== this.#era || entry?.collection !== sink || entry.refused || !this.#isFresh(found.watch)) return;
    store.flush();
    const { phase, items } = sink.getSnapshot();
    if (phase !== 'loading' || items.length > 0) return;
    this.#fill(sink, found.watch, found.texts, false);
    // Only now: where the schedule runs at once, the rows have seemed to be complete for a moment, and so as new as the stream.
    entry.since = found.watch.asOf;
    sink.commit();
  }

  #attend(): void {
    const { signal } = this.#over;
    if (signal.aborted) return;
    const timer = setInterval(() => void this.#queue(false), this.#every);
    const unsubscribe = this.#kc.connection.subscribe(() => this.#look());
    signal.addEventListener('abort', () => {
      clearInterval(timer);
      unsubscribe();
    });
    const { document, addEventListener } = globalThis as unknown as { document?: Page; addEventListener: Listen };
    if (!document) return;
    const leave = (): void => void this.#queue(true);
    // A page is hidden before it is frozen.
    document.addEventListener('visibilitychange', () => this.#hidden && leave(), { signal });
    addEventListener.call(globalThis, 'pagehide', leave, { signal });
  }

  /** A page that nobody looks at leaves it to others to write. */
  get #hidden(): boolean {
    return (globalThis as unknown as { document?: Page }).document?.visibilityState === 'hidden';
  }

  /** What may not be seen any more does not stay. */
  #hear(event: StreamEvent): void {
    this.#proven ||= event.type !== 'goodbye';
    if ((event.type === 'reset' && event.reason === 'epoch') || (event.type === 'goodbye' && event.reason === 'revoked')) void this.#purge();
    const { type, watch } = event;
    // What restricts a watch is told before its rows; of one that is told nothing is seen as a whole.
    if (type === 'synced' && !this.#visible.has(watch)) this.#visible.set(watch, '');
    if (type === 'unknown' && /^(page|counts)$/.test(event.name)) this.#outdated.delete(watch); // which end what is told as a whole
    if (!('names' in event)) return; // neither narrowed nor widened
    const { namespaces, names } = event;
    const said = namespaces ? JSON.stringify([[...namespaces].sort(), Object.entries(names).sort()]) : '';
    const path = [...this.#kc.inside.entries.values()].find(({ name }) => name === watch)?.path;
    const before = this.#visible.get(watch) ?? this.#head?.watches.find((one) => one.path === path)?.visible;
    this.#visible.set(watch, said);
    if (before === said) return;
    this.#outdated.add(watch);
    if (before !== undefined) void this.#purge();
    else void this.#compare(said).catch(() => undefined);
  }

  /**
   * This page knows of nothing on disk of what it is told about, but another one may have written since. Rows that were restricted
   * otherwise go. Kinds may differ in this, so it is no reason for others to end; but if permissions were others by now, nobody
   * else would find out.
   */
  async #compare(said: string): Promise<void> {
    await this.#disk.write(this.#cleared, (head) => {
      const watches = head?.watches.filter(({ visible }) => visible === said);
      return head && watches && watches.length < head.watches.length ? { head: { ...head, turn: random(), watches }, changes: [] } : undefined;
    });
  }

  #look(): void {
    const { client, entries } = this.#kc.inside;
    const error = client?.state.error;
    if (error && error !== this.#denied && error.reason === 'http:401' && isFinal(client.state)) {
      this.#denied = error;
      void this.#purge();
      // Nobody has said yet that it may be seen by who looks at it.
      if (!this.#proven) {
        for (const entry of entries.values()) {
          entry.refused ??= error;
          entry.collection.commit();
        }
      }
    }
    const refused = [...entries.values()].filter((entry) => entry.refused && this.#head?.watches.some(({ path }) => path === entry.path));
    if (refused.length > 0) void this.#purge();
  }

  /** Nothing stays on disk. What is known from here on may be written. */
  async #purge(): Promise<void> {
    this.#forget(undefined);
    const known = this.#cleared;
    this.#cleared = random();
    try {
      if ((await this.#disk.clear(this.#cleared)) === known) return;
      // Its user has signed out in another page.
      this.end ??= 'cleared';
      this.#stop();
    } catch {
      this.end ??= 'failed';
    }
  }

  /** What this page believed to be on disk is not, or not all. */
  #forget(head: Head | undefined): void {
    this.#era++;
    this.#head = head;
    this.#segments.clear();
    this.#written.clear();
  }

  #queue(urgent: boolean): Promise<void> {
    if (this.end || (this.#hidden && !urgent)) return Promise.resolve();
    this.#saving = this.#saving.then(async () => {
      try {
        await this.#save(urgent);
        this.#failures = 0;
      } catch (error) {
        await this.#fail(error);
      }
    });
    return this.#saving;
  }

  async #fail(error: unknown): Promise<void> {
    if (this.end) return;
    if (error instanceof Error && error.name === 'QuotaExceededError') {
      this.end = 'full';
      await this.#purge();
      this.#stop();
    } else if (++this.#failures >= mostFailures) {
      this.end = 'failed';
      this.#stop();
    }
  }

  async #save(urgent: boolean): Promise<void> {
    const first = await this.#disk.head();
    if (this.end || this.#isOthers(first)) return;
    // Somebody has written since: this page has never seen what is there.
    if (first?.turn !== this.#head?.turn) this.#forget(first);
    const taken = this.#take();
    if (!taken) return;
    const era = this.#era;
    const made = await this.#make(taken, urgent);
    if (era !== this.#era) return;
    let next: Head | undefined;
    const known = await this.#disk.write(this.#cleared, (present) => {
      if (present?.turn !== this.#head?.turn || this.#isOthers(present)) return undefined; // the next time
      next = this.#headOf(taken, made);
      return { head: next, changes: made.map(({ change }) => change) };
    });
    if (era !== this.#era) return;
    if (!known) {
      this.end = 'cleared';
      this.#stop();
    }
    if (!next) return;
    this.#head = next;
    const there = new Set(next.watches.map(({ path }) => path));
    for (const path of this.#segments.keys()) if (!there.has(path)) this.#segments.delete(path);
    this.#wide.clear();
    for (const { path, width } of taken.left) this.#wide.set(path, width);
    for (const { entry, rows, segments, snapshot } of made) {
      if (!there.has(entry.path)) {
        this.#wide.set(entry.path, sizeOf(segments) / rows.length);
        continue;
      }
      this.#segments.set(entry.path, segments);
      this.#written.set(entry.path, snapshot);
    }
  }

  #isOthers(head: Head | undefined): boolean {
    if (!head || head.writer === this.#writer) return false;
    const left = head.until - Date.now();
    return left > 0 && left <= 3 * this.#every; // a clock that was set back proves nothing
  }

  /** What is known of each watch that is complete, and the position that goes with it; undefined: there is none. */
  #take(): Taken | undefined {
    const { client, entries, names, store } = this.#kc.inside;
    if (!client || isFinal(client.state) || client.asOf === undefined) return undefined;
    const position = client.lastEventId;
    // Of a stream that tabs share it is of use to others only with the gateway's own.
    if (position === '' || /^~[^~]*$/.test(position)) return undefined;
    store.flush();
    const watches: TakenWatch[] = [];
    const left: { path: string; width: number }[] = [];
    let size = 0;
    for (const entry of entries.values()) {
      const { collection, path, name, refused } = entry;
      const snapshot = collection.getSnapshot();
      const objects = collection instanceof WatchedCollection;
      if (refused || snapshot.phase !== 'current' || !this.#keep(path) || !(objects || (collection.told && !this.#outdated.has(name)))) continue;
      const same = this.#written.get(path) === snapshot && this.#segments.get(path);
      const rows = same ? same.flatMap((segment) => segment.rows) : objects ? snapshot.items : (collection.told?.() ?? []);
      const visible = snapshot.namespaces ? (this.#visible.get(name) ?? this.#head?.watches.find((watch) => watch.path === path)?.visible ?? '') : '';
      // No texts are made again and again for which there is no room.
      const width = this.#wide.get(path);
      const own = width === undefined ? sizeOf(this.#segments.get(path) ?? []) : width * rows.length;
      if (width !== undefined && size + own > this.#maxSize) {
        left.push({ path, width });
        continue;
      }
      watches.push({ entry, rows, objects, snapshot, visible });
      size += own;
    }
    return { position, names, asOf: client.asOf, watches, left };
  }

  async #make({ watches }: Taken, urgent: boolean): Promise<Made[]> {
    let began = performance.now();
    const made: Made[] = [];
    for (const watch of watches) {
      const { path } = watch.entry;
      const before = this.#segments.get(path);
      const { segments, changed, gone } = plan(before ?? [], watch.rows);
      const texts: [number, string][] = [];
      for (const segment of changed) {
        if (!urgent && performance.now() - began > slice) {
          await new Promise((resolve) => setTimeout(resolve));
          began = performance.now();
        }
        const text = JSON.stringify(segment.rows);
        segment.length = text.length;
        texts.push([segment.n, text]);
      }
      made.push({ ...watch, segments, change: { path, whole: before === undefined, texts, gone } });
    }
    return made;
  }

  #headOf({ position, names, asOf }: Taken, made: readonly Made[]): Head {
    const now = Date.now();
    const taken = made.map(({ entry, objects, snapshot, visible, segments }): WatchOnDisk => ({
      path: entry.path,
      name: entry.name,
      asOf,
      objects,
      visible,
      namespaces: snapshot.namespaces,
      segments: segments.map(({ n, length }) => [n, length] as const),
    }));
    const paths = new Set(taken.map(({ path }) => path));
    const before = (this.#head?.watches ?? []).filter((watch) => !paths.has(watch.path) && this.#isFresh(watch)).map((watch) => ({ ...watch, name: undefined }));
    let size = 0;
    const watches = [...taken, ...before.sort((a, b) => b.asOf - a.asOf)].filter(({ segments }) => {
      const own = segments.reduce((sum, [, length]) => sum + length, 0);
      const fits = size + own <= this.#maxSize;
      if (fits) size += own;
      return fits;
    });
    return { turn: random(), writer: this.#writer, until: this.#hidden ? 0 : now + 3 * this.#every, position, names, expires: asOf + this.#maxAge, watches };
  }
}

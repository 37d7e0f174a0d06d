// What has been told of one watch, kept so that it can be told to a tab that comes later.

import type { StreamEvent } from '../events.ts';
import { mergePatch } from '../mergepatch.ts';
import type { KubeObject } from '../object.ts';
import type { Frame } from '../parser.ts';
import { partsOf } from './protocol.ts';

/** A line of a log, or a transition: as many of the newest as one that follows them keeps. */
const keep = 10_000;

const anew: Frame = { event: 'reset', data: '{"reason":"tabs"}', id: '' };
const frameOf = (event: string, data: unknown): Frame => ({ event, data: JSON.stringify(data), id: '' });

export class WatchReplica {
  /** The beginning was told to a leader before, so that this cannot be told to others. */
  dark: boolean;
  readonly #objects = new Map<string, KubeObject>();
  #lines: Frame[] = [];
  /** All of it was told, as far as this connection knows. */
  #current: boolean;
  /** Told since the stream was opened or the last reset, until that is complete. */
  #told: Set<string> | undefined = new Set();
  /** The connection goes on from a position, and what was missed is not all told. */
  #behind = false;
  /** How many lines there were when the connection began. */
  #before = 0;
  readonly #partial: boolean;
  #reset = false;
  #begun = false;
  /** The last page, the last counts, or the queue as it was last: each says all. */
  #page: Frame | undefined;
  #narrowed: Frame | undefined;
  #stale: Frame | undefined;

  /** @param partial a connection goes on behind what was told, also before that is complete */
  constructor(dark: boolean, partial: boolean) {
    this.dark = this.#current = dark;
    this.#partial = partial;
  }

  /** A connection begins. Returns what is to be told of that: nothing, unless all will be told anew. */
  opened(resumed: boolean, behind: boolean): Frame[] {
    this.#told = new Set();
    this.#before = this.#lines.length;
    this.#begun = this.#reset = false;
    this.#behind = behind;
    if (!resumed) this.#narrowed = this.#stale = undefined;
    if (resumed && (this.#current || this.#partial)) return [];
    this.#begin();
    return [anew];
  }

  /** It was complete, and events were missed that are on their way: whoever is told it now takes it for what there is. */
  get old(): boolean {
    return this.#current && this.#behind;
  }

  /**
   * Returns what is to be told besides: before the event, and after it. Undefined if something must have been missed.
   */
  apply(event: StreamEvent, frame: Frame): readonly [before: readonly Frame[], after: readonly Frame[]] | undefined {
    const before = this.#start(event.type);
    let after: readonly Frame[] = [];
    // A queue has no position: it is told anew on each connection, as it is then.
    if (/\.(bookmark|synced|queue)$/.test(frame.event)) this.#behind = false;
    switch (event.type) {
      case 'added':
      case 'modified':
        this.#objects.set(event.object.metadata.uid, event.object);
        this.#told?.add(event.object.metadata.uid);
        break;
      case 'deleted':
        this.#told?.delete(event.object.metadata.uid);
        this.#objects.delete(event.object.metadata.uid);
        break;
      case 'patched': {
        const old = this.#objects.get(event.uid);
        if (old) {
          const next = mergePatch(old, event.patch) as KubeObject;
          this.#objects.set(event.uid, { ...next, metadata: { ...next.metadata, resourceVersion: event.resourceVersion } });
          this.#told?.add(event.uid);
        } else if (!this.dark) return undefined;
        break;
      }
      case 'reset':
        if (typeof event.data.container === 'string') this.#take(frame);
        else this.#begin();
        break;
      case 'synced': {
        // Where a connection broke between the resets of two watches, the second is told anew without a word.
        const unannounced = this.#told !== undefined && !this.#reset && this.#current;
        if (unannounced) this.#lines.splice(0, this.#before);
        for (const uid of this.#objects.keys()) if (this.#told && !this.#told.has(uid)) this.#objects.delete(uid);
        this.#told = undefined;
        this.#current = true;
        this.dark = false;
        if (unannounced) after = this.frames();
        break;
      }
      case 'stale':
        this.#stale = frame;
        break;
      case 'live':
        this.#stale = undefined;
        break;
      case 'narrowed':
      case 'widened':
        this.#narrowed = frame;
        break;
      case 'unknown':
        if (/^(page|counts|queue)$/.test(event.name)) this.#turn(frame);
        else this.#take(frame);
    }
    return [before, after];
  }

  /** What restricts the watch, and that it is old, if it is. */
  get standing(): Frame[] {
    return [this.#narrowed, this.#stale].filter((frame) => frame !== undefined).map((frame) => ({ ...frame, event: partsOf(frame)[1] }));
  }

  /** All that is known, as far as it is, without the watch's name. */
  frames(): Frame[] {
    // Within a snapshot what it has not told yet may be gone: told as if it had, it would outlive the snapshot's end.
    const known = [...this.#objects.values()].filter(({ metadata }) => this.#current || this.#told?.has(metadata.uid));
    return [
      anew,
      ...this.standing,
      ...known.map((object) => frameOf('added', object)),
      ...this.#lines.map((frame) => ({ ...frame, event: partsOf(frame)[1] })),
      ...(this.#page && this.#has(this.#page) ? [{ ...this.#page, event: partsOf(this.#page)[1] }] : []),
      ...(this.#current && !this.#page ? [frameOf('synced', { resourceVersion: '' })] : []),
    ];
  }

  /** A batch is complete: what the page does not name is gone. */
  #turn(frame: Frame): void {
    this.#page = frame;
    // Of counts and queues nothing is named, and no object was told.
    const named = new Set((JSON.parse(frame.data) as { uids?: string[] }).uids);
    for (const uid of this.#objects.keys()) if (!named.has(uid)) this.#objects.delete(uid);
    this.#current = true;
    if (this.#has(frame)) this.dark = false;
  }

  /** Whether all that a page names is there, which it is not within a batch. */
  #has({ data }: Frame): boolean {
    const { uids = [] } = JSON.parse(data) as { uids?: string[] };
    return uids.every((uid) => this.#objects.has(uid));
  }

  #begin(): void {
    this.#told = new Set();
    this.#reset = true;
    this.#current = this.dark = false;
    this.#lines = [];
    this.#before = 0;
  }

  // What restricts a watch, or that it is old, is told first on each connection, if it is so.
  #start(type: StreamEvent['type']): Frame[] {
    if (this.#begun || type === 'reset') return [];
    this.#begun = true;
    const lifted: Frame[] = [];
    if (this.#narrowed && type !== 'narrowed' && type !== 'widened') {
      this.#narrowed = undefined;
      lifted.push(frameOf('widened', { all: true }));
    }
    if (this.#stale && type !== 'stale') {
      this.#stale = undefined;
      lifted.push(frameOf('live', { since: new Date().toISOString() }));
    }
    return lifted;
  }

  #take(frame: Frame): void {
    this.#lines.push(frame);
    if (this.#lines.length <= 1.25 * keep) return;
    this.#before = Math.max(0, this.#before - this.#lines.splice(0, this.#lines.length - keep).length);
  }
}

// The stream of one client, as its tab's share of the one that all tabs have.

import type { ConnectionRequest, Stream } from '../connection.ts';
import { Lost } from '../lost.ts';
import type { Frame } from '../parser.ts';
import { partsOf, written, type Answered, type Cursor } from './protocol.ts';

export class TabStream implements Stream {
  readonly id: string;
  readonly paths: readonly (readonly [string, string])[];
  readonly resumed: boolean;
  readonly retry = undefined;
  readonly onGap: () => void;
  /** Whose it is: the same for all tab streams of one client. */
  readonly client: object;
  readonly doubted: boolean;
  /** Behind what {@link next} has given out. */
  lastEventId: string;
  /** Behind what was heard, which is what a leader is asked from. */
  position: string;
  /** Resolves once the leader tells this tab stream something: with false if it has no room. Rejects as `connect` does. */
  readonly opened: Promise<boolean>;
  /** How often it has given up what a leader may have answered. */
  turn = 0;
  #open: (room: boolean) => void = () => undefined;
  #refuse: (error: Error) => void = () => undefined;
  /** From names on the gateway's stream to its own; undefined: the leader has not answered yet. */
  #names: Map<string, string> | undefined;
  #done = new Set<string>();
  /** What was told to all while the answer is awaited. */
  #early: (readonly [Cursor, readonly Frame[]])[] = [];
  #queue: Frame[] | undefined;
  #error: Error | undefined;
  #room = false;
  #detached = 0;
  #ring: () => void = () => undefined;
  readonly #onClose: () => void;

  constructor(id: string, paths: TabStream['paths'], request: ConnectionRequest, client: object, onClose: () => void) {
    this.id = id;
    this.paths = paths;
    this.resumed = request.lastEventId !== '';
    this.lastEventId = this.position = request.lastEventId;
    this.onGap = request.onGap;
    this.doubted = request.doubted;
    this.client = client;
    this.#onClose = onClose;
    this.opened = new Promise((resolve, reject) => {
      this.#open = resolve;
      this.#refuse = reject;
    });
    this.opened.catch(() => undefined);
  }

  /** Whether it hears the leader. */
  get attached(): boolean {
    return this.#names !== undefined;
  }

  /** For how long it has heard of no leader, since it once did, in milliseconds. */
  get deaf(): number {
    return this.#room && !this.attached ? performance.now() - this.#detached : 0;
  }

  /** Another leader is about to be asked, or the same again. */
  detach(): void {
    this.turn++;
    if (this.attached) this.#detached = performance.now();
    this.#names = undefined;
    this.#early = [];
  }

  answer(answer: Answered): void {
    if (answer.kind === 'refused') {
      if (answer.status === 0) this.#open(false);
      this.fail(new Lost(`http:${answer.status}`, answer.message));
      return;
    }
    if (answer.turn !== this.turn) return; // it is from before that was given up
    this.#names = new Map(answer.names.map(([own, name]) => [name, own]));
    this.#done = new Set(answer.done);
    const queue = answer.frames.map((frame) => this.#own(frame, answer.at)).filter((frame) => frame !== undefined);
    this.#push(queue, answer.at);
    for (const [cursor, frames] of this.#early) this.#take(cursor, frames, answer.at.seq);
    this.#early = [];
    this.#room = true;
    this.#open(true);
  }

  /** What the leader tells all, up to the cursor. */
  tell(cursor: Cursor, frames: readonly Frame[]): void {
    if (this.#names) this.#take(cursor, frames, -1);
    else this.#early.push([cursor, frames]);
  }

  fail(error: Error): void {
    this.#error ??= error;
    this.#refuse(error);
    this.#ring();
  }

  async next(): Promise<readonly Frame[]> {
    if (!this.#queue && !this.#error) await new Promise<void>((resolve) => (this.#ring = resolve));
    const queue = this.#queue;
    this.#queue = undefined;
    if (queue) {
      this.lastEventId = this.position;
      return queue;
    }
    throw this.#error ?? new Lost('ended', '');
  }

  close(): void {
    this.fail(new Lost('ended', 'closed'));
    this.#onClose();
  }

  #push(frames: readonly Frame[], cursor: Cursor): void {
    if (this.#queue) for (const frame of frames) this.#queue.push(frame); // which may be too many for arguments
    else this.#queue = [...frames];
    this.position = this.#written(cursor);
    this.#ring();
  }

  #take(cursor: Cursor, frames: readonly Frame[], behind: number): void {
    const first = cursor.seq - frames.length + 1;
    const own = frames.map((frame, n) => {
      if (first + n <= behind) return undefined;
      const [watch, type] = partsOf(frame);
      const name = watch === '' ? '' : this.#names?.get(watch);
      if (name === undefined) return undefined;
      return this.#own({ ...frame, event: name === '' ? type : `${name}.${type}` }, { ...cursor, seq: first + n });
    });
    this.#push(own.filter((frame) => frame !== undefined), cursor);
  }

  // A position names what is complete there, and no more than the tab stream has asked for.
  #own(frame: Frame, cursor: Cursor): Frame {
    const [own, type] = partsOf(frame);
    if (/^(synced|page|counts)$/.test(type) || this.#partial(own)) this.#done.add(own);
    if (type === 'reset' && !this.#partial(own)) this.#done.delete(own);
    // The gateway's position is that behind all that was told at once.
    return { ...frame, id: this.#written({ ...cursor, id: '' }) };
  }

  #partial(own: string): boolean {
    return this.paths.some(([name, path]) => name === own && isPartial(path));
  }

  #written(cursor: Cursor): string {
    const names = [...(this.#names ?? [])].filter(([, own]) => this.#done.has(own)).map(([name, own]) => [own, name] as const);
    return written(cursor, names);
  }
}

/** A log is gone on with behind what was told, also before that is complete. */
export const isPartial = (path: string): boolean => path.startsWith('/logs/');

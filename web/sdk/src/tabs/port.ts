// The stream of one client, as its tab's share of the one that all tabs have.

import type { ConnectionRequest, Stream } from '../connection.ts';
import { Lost, Refused } from '../lost.ts';
import type { Frame } from '../parser.ts';
import { partsOf, written, type Answered, type Mark } from './words.ts';

export class Port implements Stream {
  readonly id: string;
  readonly paths: readonly (readonly [string, string])[];
  readonly resumed: boolean;
  readonly retry = undefined;
  readonly onGap: () => void;
  /** Whose it is: the same for all ports of one client. */
  readonly client: object;
  readonly doubted: boolean;
  /** Behind what {@link next} has given out. */
  lastEventId: string;
  /** Behind what was heard, which is what a leader is asked from. */
  position: string;
  /** Resolves once the leader tells this port something: with false if it has no room. Rejects as Connection.open does. */
  readonly opened: Promise<boolean>;
  /** How often it has given up what a leader may have answered. */
  turn = 0;
  #open: (room: boolean) => void = () => undefined;
  #refuse: (error: Error) => void = () => undefined;
  /** From names on the stream to the port's own; undefined: the leader has not answered yet. */
  #names: Map<string, string> | undefined;
  #done = new Set<string>();
  /** What was told to all while the answer is awaited. */
  #early: (readonly [Mark, readonly Frame[]])[] = [];
  #queue: Frame[] | undefined;
  #error: Error | undefined;
  #room = false;
  #detached = 0;
  #ring: () => void = () => undefined;
  readonly #onClose: () => void;

  constructor(id: string, paths: Port['paths'], request: ConnectionRequest, client: object, onClose: () => void) {
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
      this.fail(new Refused(answer.status, answer.message, undefined));
      return;
    }
    if (answer.turn !== this.turn) return; // it is from before that was given up
    this.#names = new Map(answer.names.map(([own, name]) => [name, own]));
    this.#done = new Set(answer.done);
    const queue = answer.frames.map((frame) => this.#own(frame, answer.mark)).filter((frame) => frame !== undefined);
    this.#push(queue, answer.mark);
    for (const [mark, frames] of this.#early) this.#take(mark, frames, answer.mark.seq);
    this.#early = [];
    this.#room = true;
    this.#open(true);
  }

  /** What the leader tells all, up to the mark. */
  tell(mark: Mark, frames: readonly Frame[]): void {
    if (this.#names) this.#take(mark, frames, -1);
    else this.#early.push([mark, frames]);
  }

  fail(error: Error): void {
    this.#error ??= error;
    this.#refuse(error);
    this.#ring();
  }

  async next(): Promise<readonly Frame[] | undefined> {
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

  #push(frames: readonly Frame[], mark: Mark): void {
    if (this.#queue) for (const frame of frames) this.#queue.push(frame); // which may be too many for arguments
    else this.#queue = [...frames];
    this.position = this.#written(mark);
    this.#ring();
  }

  #take(mark: Mark, frames: readonly Frame[], behind: number): void {
    const first = mark.seq - frames.length + 1;
    const own = frames.map((frame, n) => {
      if (first + n <= behind) return undefined;
      const [watch, type] = partsOf(frame);
      const name = watch === '' ? '' : this.#names?.get(watch);
      if (name === undefined) return undefined;
      return this.#own({ ...frame, event: name === '' ? type : `${name}.${type}` }, { ...mark, seq: first + n });
    });
    this.#push(own.filter((frame) => frame !== undefined), mark);
  }

  // A position names what is complete there, and no more than the port has asked for.
  #own(frame: Frame, mark: Mark): Frame {
    const [own, type] = partsOf(frame);
    if (/^(synced|page|counts)$/.test(type) || this.#partial(own)) this.#done.add(own);
    if (type === 'reset' && !this.#partial(own)) this.#done.delete(own);
    return { ...frame, id: this.#written(mark) };
  }

  #partial(own: string): boolean {
    return this.paths.some(([name, path]) => name === own && isPartial(path));
  }

  #written(mark: Mark): string {
    const names = [...(this.#names ?? [])].filter(([, own]) => this.#done.has(own)).map(([name, own]) => [own, name] as const);
    return written(mark, names);
  }
}

/** A log is gone on with behind what was told, also before that is complete. */
export const isPartial = (path: string): boolean => path.startsWith('/logs/');

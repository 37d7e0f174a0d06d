// What tabs say to each other.

import type { Frame } from '../parser.ts';

/** Has heard all that a leader has told up to a number. */
export interface Cursor {
  readonly leader: string;
  readonly seq: number;
  /** The gateway's position there. */
  readonly id: string;
}

/** To the leader. */
export type Asked =
  | {
      readonly kind: 'attach';
      readonly tab: string;
      readonly stream: string;
      /** The same as long as it has not given up what it was answered; asked twice, it is answered once. */
      readonly turn: number;
      /** From the tab stream's own names to paths. */
      readonly paths: readonly (readonly [string, string])[];
      readonly position: string;
      readonly visible: boolean;
      /** Only what is heard of the gateway from here on counts. */
      readonly doubted: boolean;
    }
  | { readonly kind: 'detach'; readonly stream: string }
  | { readonly kind: 'visible' }
  | { readonly kind: 'ping' };

/** By the leader. */
export type Told = { readonly leader: string } & (
  | { readonly kind: 'lead'; readonly base: Cursor | undefined }
  | { readonly kind: 'beat' | 'hidden' | 'resign' }
  | { readonly kind: 'frames'; readonly at: Cursor; readonly frames: readonly Frame[] }
  | { readonly kind: 'lost'; readonly reason: string; readonly message: string }
);

/** By the leader, to one tab. */
export type Answered = { readonly leader: string; readonly stream: string } & (
  | {
      readonly kind: 'go';
      readonly turn: number;
      readonly at: Cursor;
      /** From the tab stream's names to those on the gateway's stream. */
      readonly names: readonly (readonly [string, string])[];
      /** Of the tab stream's names those that go on from its position. */
      readonly done: readonly string[];
      /** What the tab stream lacks, by its own names. */
      readonly frames: readonly Frame[];
    }
  /** Status 0: there is no room; a stream of its own may have it. */
  | { readonly kind: 'refused'; readonly status: number; readonly message: string }
);

/** What a tab stream has heard: the cursor's leader and number, and which of its names, called what on the stream, are complete there. */
export interface Place {
  readonly leader: string;
  readonly seq: number;
  readonly names: ReadonlyMap<string, string>;
  /** The gateway's position there, if it is known: for when that leader is long gone. */
  readonly id: string | undefined;
}

const form = /^~([a-z0-9]+)\.(\d+)((?:\.[a-z0-9]+-[a-z0-9]+)*)(?:~(.+))?$/;

/** As a position, which no gateway knows. */
export function written({ leader, seq, id }: Cursor, names: Iterable<readonly [string, string]>): string {
  return [`~${leader}.${seq}`, ...Array.from(names, ([own, name]) => `${own}-${name}`)].join('.') + (id && `~${id}`);
}

/** Undefined: a gateway's own, or nothing. */
export function placeOf(position: string): Place | undefined {
  const [, leader = '', seq, names = '', id] = form.exec(position) ?? [];
  if (leader === '') return undefined;
  return { leader, seq: Number(seq), names: new Map(names.split('.').slice(1).map((pair) => pair.split('-') as [string, string])), id };
}

/** A frame's watch and type. */
export function partsOf({ event }: Frame): readonly [watch: string, type: string] {
  const dot = event.indexOf('.');
  return dot === -1 ? ['', event] : [event.slice(0, dot), event.slice(dot + 1)];
}

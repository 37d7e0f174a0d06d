// Which parts of a log are loaded: stretches that were read by their places, and behind them what is followed. Both are numbered alike.

import type { LogEntry } from '@kubecast/sdk';

/** Entries whose numbers follow one another. */
export interface Stretch {
  /** The number of the first. */
  readonly from: number;
  readonly entries: readonly LogEntry[];
}

/** Entries that are not loaded. */
export interface Gap {
  /** The number of the first. */
  readonly from: number;
  readonly missing: number;
}

export type Piece = Stretch | Gap;

export const isGap = (piece: Piece): piece is Gap => 'missing' in piece;
const endOf = ({ from, entries }: Stretch): number => from + entries.length;

/** With one more, in order; those that touch become one. */
export function withStretch(stretches: readonly Stretch[], added: Stretch): readonly Stretch[] {
  const joined: Stretch[] = [];
  for (const one of [...stretches, added].filter(({ entries }) => entries.length > 0).sort((a, b) => a.from - b.from)) {
    const last = joined.at(-1);
    if (last && one.from <= endOf(last)) joined[joined.length - 1] = { from: last.from, entries: [...last.entries, ...one.entries.slice(endOf(last) - one.from)] };
    else joined.push(one);
  }
  return joined;
}

/** So many entries at most, of which those go that are furthest from a number. */
export function nearest(stretches: readonly Stretch[], number: number, most: number): readonly Stretch[] {
  const kept = [...stretches];
  let over = kept.reduce((sum, { entries }) => sum + entries.length, 0) - most;
  while (over > 0) {
    const [first, last] = [kept[0], kept.at(-1)];
    if (!first || !last) break;
    const front = number - first.from >= endOf(last) - number;
    const from = front ? first : last;
    const dropped = Math.min(over, 1_000, from.entries.length);
    const rest = front ? { from: from.from + dropped, entries: from.entries.slice(dropped) } : { from: from.from, entries: from.entries.slice(0, -dropped) };
    kept.splice(front ? 0 : kept.length - 1, 1, ...(rest.entries.length > 0 ? [rest] : []));
    over -= dropped;
  }
  return kept;
}

/** What there is from the first stretch on to the end of what is followed, of which `tail` is what is shown. */
export function piecesOf(stretches: readonly Stretch[], tail: Stretch): readonly Piece[] {
  const pieces: Piece[] = [];
  for (const one of [...stretches, tail]) {
    const last = pieces.at(-1) as Stretch | undefined; // no gap is the last
    const end = last ? endOf(last) : one.from;
    if (one.from > end) pieces.push({ from: end, missing: one.from - end });
    const entries = one.entries.slice(Math.max(0, end - one.from));
    if (entries.length > 0 || one === tail) pieces.push({ from: Math.max(end, one.from), entries });
  }
  return pieces;
}

/** All that is loaded, without a word of what is not. */
export const entriesIn = (pieces: readonly Piece[]): readonly LogEntry[] => (pieces.length === 1 && pieces[0] && !isGap(pieces[0]) ? pieces[0].entries : pieces.flatMap((piece) => (isGap(piece) ? [] : piece.entries)));

/** Whether an entry is loaded. */
export const isLoaded = (pieces: readonly Piece[], number: number): boolean => pieces.some((piece) => !isGap(piece) && number >= piece.from && number < endOf(piece));

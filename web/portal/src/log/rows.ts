// What a log's list shows, row by row. Some of it may not be loaded.

import type { LogEntry } from '@kubecast/sdk';
import { isGap, type Gap, type Piece } from './stretches.ts';

export interface Row {
  /** Ascending, and the same as long as the row is there. */
  readonly id: number;
  /** Undefined: it is a gap. */
  readonly entry: LogEntry | undefined;
  readonly gap?: Gap;
}

export interface Rows {
  readonly count: number;
  readonly at: (index: number) => Row | undefined;
}

/** The rows of all pieces, of which `shown` are those of a piece's entries that are to be seen. */
export function rowsOf(pieces: readonly Piece[], shown: (entries: readonly LogEntry[]) => readonly LogEntry[] = (entries) => entries): Rows {
  const parts = pieces.map((piece) => (isGap(piece) ? piece : shown(piece.entries)));
  let count = 0;
  const begins = parts.map((part) => {
    const begin = count;
    count += 'missing' in part ? 1 : part.length;
    return begin;
  });
  return {
    count,
    at: (index) => {
      let n = parts.length - 1;
      while (n > 0 && (begins[n] ?? 0) > index) n--; // there are few
      const part = parts[n];
      if (!part || index < 0 || index >= count) return undefined;
      if ('missing' in part) return { id: part.from, entry: undefined, gap: part };
      const entry = part[index - (begins[n] ?? 0)];
      return entry && { id: entry.number, entry };
    },
  };
}

/** Where the row with an id is, or would be. */
export function indexOf(rows: Rows, id: number): number {
  let from = 0;
  let to = rows.count;
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((rows.at(middle)?.id ?? Infinity) < id) from = middle + 1;
    else to = middle;
  }
  return from;
}

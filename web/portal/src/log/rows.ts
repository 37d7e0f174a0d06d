// What a log's list shows, row by row. Some of it may not be loaded.

import type { LogEntry } from '@kubecast/sdk';

export interface Row {
  /** Ascending, and the same as long as the row is there. */
  readonly id: number;
  /** Undefined: it is not loaded. */
  readonly entry: LogEntry | undefined;
}

export interface Rows {
  readonly count: number;
  readonly at: (index: number) => Row | undefined;
}

export const rowsOf = (entries: readonly LogEntry[]): Rows => ({
  count: entries.length,
  at: (index) => {
    const entry = entries[index];
    return entry && { id: entry.number, entry };
  },
});

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

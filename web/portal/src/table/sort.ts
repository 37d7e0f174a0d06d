import type { Row } from './rows.ts';

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export type SortValue = string | number | undefined;

/**
 * Sorted by a value, which is asked for once per row; what has none, or no text, comes last in either direction, and
 * equals are ordered by name, so that rows do not change places for no reason. No table library does this: one makes an
 * object per row first, at each change, which takes a tenth of a second for thirty thousand rows, and this a hundredth.
 */
export function sortRows<R extends Row>(rows: readonly R[], value: (row: R) => SortValue, descending: boolean): readonly R[] {
  const direction = descending ? -1 : 1;
  return rows
    .map((row) => {
      const key = value(row);
      return { row, key: key === '' ? undefined : key };
    })
    .sort((a, b) => {
      if (a.key === b.key) return compare(a.row.name, b.row.name) || compare(a.row.uid, b.row.uid);
      if (a.key === undefined) return 1;
      if (b.key === undefined) return -1;
      return direction * compare(a.key, b.key);
    })
    .map(({ row }) => row);
}

// Names are ASCII, and a collator takes seconds for tens of thousands of them.
function compare(a: string | number, b: string | number): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

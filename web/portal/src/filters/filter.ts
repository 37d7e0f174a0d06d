// Search and counts over rows. Plain functions, because they run over every row of a large cluster.

import type { Row } from '../table/rows.ts';

/** Every word of the search must stand somewhere in one of the texts; case does not matter. */
export function matcher<R extends Row>(search: string, texts: (row: R) => readonly string[]): (row: R) => boolean {
  const words = search.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length === 0) return () => true;
  return (row) => {
    const text = texts(row).join('\n').toLowerCase();
    return words.every((word) => text.includes(word));
  };
}

export function countByState(rows: readonly Row[]): ReadonlyMap<string, number> {
  const counts = new Map<string, number>();
  for (const { state } of rows) counts.set(state, (counts.get(state) ?? 0) + 1);
  return counts;
}

// The rows of a watch as texts of some hundred rows each, of which only those are written again that have changed.

export interface Segment {
  /** Its place; greater than that of the one before. */
  readonly n: number;
  readonly rows: readonly unknown[];
  /** Of its text, which is made once; 0: not yet. */
  length: number;
}

/** What is to be written for a watch's rows to be on disk, if those before are. */
export interface Plan {
  readonly segments: readonly Segment[];
  readonly changed: readonly Segment[];
  /** The places of those that are no more. */
  readonly gone: readonly number[];
}

/**
 * Rows keep their order: those that stay stay where they are, and new ones come last. Whatever order they come in, what is planned is exactly
 * what is there now. A text has `most` rows at most.
 */
export function plan(before: readonly Segment[], rows: readonly unknown[], most = 256): Plan {
  const segments: Segment[] = [];
  let at = 0;
  for (const segment of before) {
    const kept: unknown[] = [];
    let changed = false;
    for (const row of segment.rows) {
      const now = rows[at];
      const stays = at < rows.length && keyOf(now) === keyOf(row);
      if (stays) kept.push(rows[at++]);
      changed ||= !stays || now !== row;
    }
    if (!changed) segments.push(segment);
    else if (kept.length > 0) segments.push({ n: segment.n, rows: kept, length: 0 });
  }
  // Among many that are nearly empty, all would be read for little.
  if (segments.length > 8 && at < (segments.length * most) / 4) {
    segments.length = at = 0;
  }
  let next = (before.at(-1)?.n ?? -1) + 1;
  const last = segments.at(-1);
  const room = last ? Math.min(most - last.rows.length, rows.length - at) : 0;
  if (last && room > 0) {
    segments[segments.length - 1] = { n: last.n, rows: [...last.rows, ...rows.slice(at, at + room)], length: 0 };
    at += room;
  }
  for (; at < rows.length; at += most) segments.push({ n: next++, rows: rows.slice(at, at + most), length: 0 });
  const stay = new Set(segments.map(({ n }) => n));
  return { segments, changed: segments.filter(({ length }) => length === 0), gone: before.map(({ n }) => n).filter((n) => !stay.has(n)) };
}

/** Objects are the same by their uid; what is told as a whole only if it is the same. */
function keyOf(row: unknown): unknown {
  return (row as { readonly metadata?: { readonly uid?: string } } | undefined)?.metadata?.uid ?? row;
}

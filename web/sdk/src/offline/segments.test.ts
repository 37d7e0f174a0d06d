import { expect, test } from 'vitest';
import { seededRandom } from '../../../mock/random.ts';
import { plan, type Segment } from './segments.ts';

interface Row {
  readonly metadata: { readonly uid: string };
}
let made = 0;
const row = (uid = `u${made++}`): Row => ({ metadata: { uid } });

/** What is on disk when all that a plan says is written, by place. */
function write(disk: Map<number, readonly unknown[]>, before: readonly Segment[], rows: readonly Row[]): readonly Segment[] {
  const { segments, changed, gone } = plan(before, rows);
  for (const n of gone) disk.delete(n);
  for (const segment of changed) {
    disk.set(segment.n, segment.rows);
    segment.length = 1;
  }
  return segments;
}
const onDisk = (disk: Map<number, readonly unknown[]>): unknown[] => [...disk].sort(([a], [b]) => a - b).flatMap(([, rows]) => rows);

test('a million rows that come and go leave no more on disk than there are', () => {
  const disk = new Map<number, readonly unknown[]>();
  let segments: readonly Segment[] = [];
  let rows: Row[] = [];
  let most = 0;
  for (let told = 0; told < 1_000_000; told += 500) {
    rows = [...rows.slice(-500), ...Array.from({ length: 500 }, () => row())];
    segments = write(disk, segments, rows);
    most = Math.max(most, disk.size);
  }
  expect(onDisk(disk)).toEqual(rows);
  expect(most).toBeLessThanOrEqual(9);
});

test('whatever changes, and in whatever order rows come, the disk has exactly those that there are', () => {
  const random = seededRandom(3);
  const disk = new Map<number, readonly unknown[]>();
  let segments: readonly Segment[] = [];
  let rows: Row[] = [];
  for (let step = 0; step < 2_000; step++) {
    const some = random();
    rows = rows.filter(() => random() > (some < 0.05 ? 0.9 : 0.05)).map((old) => (random() < 0.05 ? row(old.metadata.uid) : old));
    if (some > 0.97) rows.sort((a, b) => (a.metadata.uid < b.metadata.uid ? -1 : 1));
    rows = [...rows, ...Array.from({ length: Math.floor(random() * 120) }, () => row())];
    segments = write(disk, segments, rows);
    const found = onDisk(disk);
    expect(found.length).toBe(rows.length);
    expect(found.every((one, n) => one === rows[n])).toBe(true);
  }
});

import { expect, test } from 'vitest';
import { sortRows, type SortValue } from './sort.ts';

const rows = (['c', 'a', 'b', 'd'] as const).map((name) => ({ uid: name, name, namespace: '', state: '', created: 0 }));
const values: Record<string, SortValue> = { a: 10, b: 9, c: 9 };
const sorted = (descending: boolean) => sortRows(rows, ({ name }) => values[name], descending).map(({ name }) => name).join('');

test('numbers as numbers, equals by name, and what has no value last in either direction', () => {
  expect(sorted(false)).toBe('bcad');
  expect(sorted(true)).toBe('abcd');
});

test('the rows given are left as they are', () => {
  sorted(false);
  expect(rows.map(({ name }) => name).join('')).toBe('cabd');
});

test('fifty thousand rows are sorted within a frame or two', () => {
  const many = Array.from({ length: 50_000 }, (_, n) => ({ ...rows[0], uid: String(n), name: `n${(n * 7919) % 50_000}`, namespace: '', state: '', created: n % 977 }));
  const began = performance.now();
  sortRows(many, ({ created }) => created, false);
  // Some 40 ms on an idle machine; the bound leaves room for a busy one.
  expect(performance.now() - began).toBeLessThan(1_000);
});

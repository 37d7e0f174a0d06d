import { expect, test } from 'vitest';
import { jobColumns } from '../jobs/columns.tsx';
import { podColumns } from '../pods/columns.tsx';
import { pathsOf, sortable, windowOf, windowSize } from './questions.ts';

test('what was created last is the youngest', () => {
  expect(pathsOf('pods', { column: 'age', descending: false })).toEqual(['-metadata.creationTimestamp']);
  expect(pathsOf('pods', { column: 'age', descending: true })).toEqual(['metadata.creationTimestamp']);
  expect(pathsOf('jobs', { column: 'name', descending: true })).toEqual(['-metadata.name']);
  expect(pathsOf('pods', { column: 'restarts', descending: true })).toEqual(['-$restarts']);
  expect(pathsOf('jobs', { column: 'nothing', descending: false })).toEqual(['-metadata.creationTimestamp']); // cannot be sorted by
  expect(pathsOf('pods', { column: 'constructor', descending: true })).toEqual(['metadata.creationTimestamp']); // an address that somebody wrote
});

test('each column of a large table can be sorted by', () => {
  for (const [table, columns] of [['jobs', jobColumns], ['pods', podColumns]] as const) expect(columns.map(({ id }) => id).filter((id) => !(id in sortable[table]))).toEqual([]);
});

test('wherever one scrolls to, what is in sight is asked for, with some before and behind', () => {
  const sight = 45;
  for (const total of [0, 30, 199, 200, 201, 2_001, 99_999]) {
    for (let first = 0; first < total; first += 1 + Math.floor(total / 700)) {
      const offset = windowOf(first, total);
      expect(offset).toBeGreaterThanOrEqual(0);
      expect(offset).toBeLessThanOrEqual(first);
      expect(offset + windowSize).toBeGreaterThanOrEqual(Math.min(total, first + sight));
    }
  }
});

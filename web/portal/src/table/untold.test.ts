import { expect, test } from 'vitest';
import { jobColumns } from '../jobs/columns.tsx';
import { jobRow, type JobRow } from '../jobs/job.ts';
import { untold } from './untold.ts';

const job = (queue: string, owner: string): JobRow => ({
  ...jobRow({ metadata: { name: 'a', namespace: 'n', uid: 'u', creationTimestamp: '2026-01-01T00:00:00Z' } }),
  queue,
  owner,
});

test('a column is left out while no row has it, and the namespace where one is chosen', () => {
  expect(untold(jobColumns, [job('', ''), job('', '')], '')).toEqual(['owner', 'queue']);
  expect(untold(jobColumns, [job('', ''), job('gpu', 'mara')], '')).toEqual([]);
  expect(untold(jobColumns, [job('gpu', 'mara')], 'team-a')).toEqual(['namespace']);
});

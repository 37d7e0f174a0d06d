import { expect, test } from 'vitest';
import { nodeCells } from './nodes.ts';

const node = (status: object) => nodeCells({ metadata: { name: 'n', uid: 'u' }, status });

test('a node that is ready and pressed is told to be pressed, and one that is not ready is no trouble more', () => {
  const is = (type: string, status: string) => ({ type, status });
  expect(node({ conditions: [is('MemoryPressure', 'False'), is('DiskPressure', 'True'), is('Ready', 'True')] }).troubles).toEqual(['DiskPressure']);
  expect(node({ conditions: [is('Ready', 'Unknown')] }).troubles).toEqual([]);
  expect(node({}).troubles).toEqual([]);
});

test('the GPUs of a node are those that it has for pods, of all kinds and of parts of them', () => {
  expect(node({ allocatable: { cpu: '96', 'nvidia.com/gpu': '8' } }).gpus).toBe(8);
  expect(node({ allocatable: { 'nvidia.com/gpu': '1', 'nvidia.com/mig-1g.5gb': '7' } }).gpus).toBe(8);
  expect(node({ allocatable: { cpu: '96' } }).gpus).toBe(0);
});

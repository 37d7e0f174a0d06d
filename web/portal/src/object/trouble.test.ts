import { expect, test } from 'vitest';
import { nodeState } from './NodePage.tsx';
import { isTrouble } from './trouble.ts';

const condition = (type: string, status: string): { type: string; status: string } => ({ type, status });

test('a node whose parts are ready is well; what is not ready, or is a pressure or a problem, is told', () => {
  const well = ['Ready', 'KernelReady', 'NetworkingReady', 'StorageReady', 'ContainerRuntimeReady'].map((type) => condition(type, 'True'));
  const calm = ['MemoryPressure', 'NetworkUnavailable', 'KernelDeadlock'].map((type) => condition(type, 'False'));
  const bad = [condition('StorageReady', 'False'), condition('DiskPressure', 'True'), condition('NetworkUnavailable', 'True')];
  const unsure = condition('KernelReady', 'Unknown');
  expect([...well, ...calm, ...bad, unsure].filter(isTrouble)).toEqual(bad);
  const node = (conditions: readonly object[]) => ({ metadata: { name: 'n', uid: 'n' }, status: { conditions } }) as unknown as Parameters<typeof nodeState>[0];
  expect(nodeState(node([...well, ...calm])).state).toBe('Ready');
  // In kubectl's words, as in the table of nodes.
  const cordoned = (conditions: readonly object[]) => nodeState({ ...node(conditions), spec: { unschedulable: true } }).state;
  expect([cordoned(well), cordoned([...well, ...bad]), cordoned(bad)]).toEqual(['Ready,SchedulingDisabled', 'Ready,SchedulingDisabled', 'NotReady,SchedulingDisabled']);
  expect(nodeState(node([...well, ...bad]))).toMatchObject({ state: 'Pressed', detail: 'StorageReady, DiskPressure, NetworkUnavailable' });
});

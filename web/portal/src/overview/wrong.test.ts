import type { Queue, Status } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { gpusOf, heldBy, holdingOf } from './Gpus.tsx';
import { endsAt, stepsUntil } from './spans.ts';
import { brokenOf, queuesOf, type OverviewNode } from './Wrong.tsx';

test('what is broken comes first, however few there are of it; what runs, waits or ended well is not broken', () => {
  const counts = ['Running', 'CrashLoopBackOff', 'Completed', 'Pending', 'ImagePullBackOff', '', 'OOMKilled', 'Init:0/2'].map((value, n) => ({ value, count: 1_000 - n }));
  expect(brokenOf(counts).map(({ value }) => value)).toEqual(['OOMKilled', 'CrashLoopBackOff', 'ImagePullBackOff']);
  expect(brokenOf([{ value: 'CrashLoopBackOff', count: 0 }])).toEqual([]);
});

test('GPUs are summed up over pods that request alike, and those of nodes by kind', () => {
  const node = (allocatable: Record<string, string>): OverviewNode => ({ metadata: { name: 'n', uid: 'n' }, status: { allocatable } });
  expect(gpusOf([node({ cpu: '96', 'nvidia.com/gpu': '8' }), node({ 'nvidia.com/gpu': '8', 'amd.com/gpu': '4' }), node({ 'amd.com/gpu': '0' })])).toEqual([['nvidia.com/gpu', 16], ['amd.com/gpu', 4]]);
  const counted = [{ values: ['team-b', '1'], count: 3 }, { values: ['team-a', '8'], count: 2 }, { values: ['team-b', '2'], count: 1 }, { values: ['team-c', '0'], count: 9 }];
  expect(heldBy(counted)).toEqual([['team-a', 16], ['team-b', 5]]);
});

test('how much of the GPUs is held is said for certain only if all was told', () => {
  const told = (status: Status = 'live', namespaces?: readonly string[]) => ({ status, data: [{}], namespaces });
  expect(holdingOf([told(), told()])).toEqual({ status: 'known', least: false });
  expect(holdingOf([told(), told('loading')]).status).toBe('loading');
  expect(holdingOf([told('loading'), told('denied')]).status).toBe('denied');
  expect(holdingOf([told('live', ['team-a']), told()]).least).toBe(true);
  expect(holdingOf([{ ...told(), data: Array.from({ length: 1_000 }, () => ({})) }]).least).toBe(true);
});

test('the queue in which most wait is the first, and one in which nobody waits is there, too', () => {
  const queues = [['a', 'small', 1], ['', 'all', 9], ['b', 'idle', 0], ['a', 'large', 8]].map(([namespace, name, waiting]) => ({ namespace, name, waiting }) as Queue);
  expect(queuesOf(queues, '').map(({ name }) => name)).toEqual(['all', 'large', 'small', 'idle']);
  expect(queuesOf(queues, 'a').map(({ name }) => name)).toEqual(['large', 'small']);
});

test('each end counts in the step in which it was, whatever the clocks of page and gateway differ', () => {
  const hour = 3_600_000;
  const steps = stepsUntil(100 * hour, { length: 3 * hour, stepLength: hour });
  const one = (from: number, succeeded: number) => ({ key: 'jobs.batch', from, succeeded, failed: 1, cancelled: 2 });
  const counted = [one(97 * hour - 700, 5), one(98 * hour + 900, 6), one(98 * hour + 900, 1), one(90 * hour, 100)];
  expect(endsAt(counted, steps, hour)).toEqual({ succeeded: [5, 7, 0], failed: [1, 2, 0], cancelled: [2, 4, 0] });
});

import type { Run } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import type { PodRow } from '../pods/pod.ts';
import { livesOf } from './lives.ts';

const run = (uid: string, more: Partial<Run> = {}): Run => ({
  seq: uid, namespace: 'n', job: { resource: 'jobs.batch', name: 'j', uid: 'j' }, name: uid, uid, index: '', node: 'n1', createdAt: 1, scheduledAt: 1, startedAt: 2, endedAt: undefined,
  late: false, restarts: 0, reason: '', message: '', container: '', exitCode: undefined, signal: undefined, requests: {}, ...more,
});
const pod = (uid: string, state: string, created = 1): PodRow => ({
  uid, name: uid, namespace: 'n', owner: '', job: 'j', node: 'n1', state, phase: 'Running', detail: '', message: '', ready: 0, containers: 1, logs: 1, restarts: 0, created,
});

test('a pod that is gone says how it ended, and one that is there is told once, as it is now', () => {
  const told = [run('a'), run('b'), run('a', { endedAt: 5, reason: 'OOMKilled', exitCode: 137 })];
  expect(livesOf([pod('b', 'Completed')], told)).toMatchObject([
    { uid: 'a', there: false, state: 'OOMKilled', run: { exitCode: 137 } },
    { uid: 'b', there: true, state: 'Completed', run: { uid: 'b' } },
  ]);
});

test.each<[Partial<Run>, string, string]>([
  [{ startedAt: undefined, reason: 'ImagePullBackOff' }, 'ImagePullBackOff', ''],
  [{ startedAt: undefined, reason: 'Unschedulable' }, 'Pending', 'Unschedulable'],
  [{ reason: 'CrashLoopBackOff' }, 'CrashLoopBackOff', ''],
  [{}, 'Running', ''],
  [{ endedAt: 3, reason: 'Completed' }, 'Completed', ''],
  [{ endedAt: 3, reason: 'Mystery' }, 'Failed', 'Mystery'],
  [{ endedAt: 3 }, 'Failed', ''],
  [{ endedAt: 3, reason: 'Evicted' }, 'Evicted', ''],
  [{ endedAt: 3, reason: 'Deleted' }, 'Deleted', ''],
])('of a pod of which nothing but %j is known, it is said in the words of the table of pods that it is %s', (more, state, detail) => {
  expect(livesOf([], [run('a', more)])).toMatchObject([{ state, detail }]);
});

test('pods of which nothing is recorded yet are told, and ranks that were made together stand in their order', () => {
  const told = ['10', '9', '2'].map((index) => run(`p${index}`, { index, createdAt: 7 }));
  expect(livesOf([pod('early', 'Running', 3)], told).map(({ uid }) => uid)).toEqual(['early', 'p2', 'p9', 'p10']);
});

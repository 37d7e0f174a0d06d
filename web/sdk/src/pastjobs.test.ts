// What a job of a history says beside its state, and how that and what is summed up are asked for.

import { expect, test } from 'vitest';
import { defineResource, pastEnds, pastJobs, pastOf, pastRuns, pastUsage, runs, transitions, type Kubecast, type KubeObject } from './index.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

/** A client to which all that it asks for is answered so, and what that was. */
function answering(items: readonly object[]): { readonly kc: Kubecast; readonly asked: string[] } {
  const asked: string[] = [];
  const request = (path: string, _: RequestInit, read: (response: Response) => unknown): Promise<unknown> => {
    asked.push(path.replace('/history/apis/batch/v1/', ''));
    return Promise.resolve(read(new Response(JSON.stringify({ items, continue: '' }))));
  };
  return { kc: { request } as unknown as Kubecast, asked };
}

test('parts are asked for by what they are parts of, and say that and how far they are', async () => {
  const parent = { resource: 'jobsets.jobset.x-k8s.io', name: 'set', uid: 's' };
  const { kc, asked } = answering([{ uid: 'a', progress: { done: 3, of: 7 }, parent, children: 2 }, { uid: 'b', progress: null, parent: null }]);
  const { items: told } = await pastJobs(kc, jobs, { parent: 's' });
  expect(asked).toEqual(['jobs?parent=s']);
  expect(told[0]).toMatchObject({ progress: { done: 3, of: 7 }, parent, children: 2 });
  expect(told[1]).toMatchObject({ progress: undefined, parent: undefined, children: 0 });
});

test('each question of a history asks for what it says, in words that the gateway knows', async () => {
  const { kc, asked } = answering([]);
  const team = { namespace: 'team' };
  await pastJobs(kc, jobs, { ...team, name: 'train', uid: 'u' });
  await pastJobs(kc, jobs, { causes: ['OOMKilled', 'a&b'], states: ['Failed'], queues: ['gold'], search: 'bert', since: '24h', until: '1h' });
  await pastRuns(kc, jobs, { ...team, job: 'u', limit: 5, continue: 'c' });
  await pastUsage(kc, jobs, { by: 'cause', since: '24h', step: '1h', causes: ['Evicted'], states: ['Failed'], owner: 'me' });
  await pastEnds(kc, jobs, { ...team, by: 'owner', since: '24h', step: '1h', queues: ['gold'] });
  expect(asked).toEqual([
    'namespaces/team/jobs/train?uid=u',
    'jobs?state=Failed&queue=gold&cause=OOMKilled%2Ca%26b&search=bert&since=24h&until=1h',
    'namespaces/team/jobs?view=runs&uid=u&limit=5&continue=c',
    'jobs?view=usage&state=Failed&cause=Evicted&by=cause&step=1h&owner=me&since=24h',
    'namespaces/team/jobs?view=ends&by=owner&step=1h&queue=gold&since=24h',
  ]);
  expect(transitions(jobs, { uid: 'u', causes: ['OOMKilled'], search: 'bert', limit: 0 }).path).toBe('/history/apis/batch/v1/jobs?view=transitions&uid=u&cause=OOMKilled&search=bert&limit=0');
  expect(runs(jobs, { ...team, job: 'u', limit: 0 }).path).toBe('/history/apis/batch/v1/namespaces/team/jobs?view=runs&uid=u&limit=0');
});

test('how long a job waited and ran is as the gateway says, and where it says nothing it is not known', async () => {
  const { kc } = answering([{ uid: 'u', waited: { seconds: 1.5, since: null }, ran: { seconds: 2, since: '2026-01-02T03:04:05Z' } }, { uid: 'late', waited: null, ran: null }, { uid: 'of an older gateway' }]);
  const { items } = await pastJobs(kc, jobs, {});
  expect(items.map(({ waited, ran }) => [waited, ran])).toEqual([[{ over: 1_500, since: undefined }, { over: 2_000, since: Date.UTC(2026, 0, 2, 3, 4, 5) }], [undefined, undefined], [undefined, undefined]]);
});

test('a job that is asked for by its uid has its pods, when it was removed, and nothing that is not known as a number', async () => {
  const pod = { uid: 'p', name: 'train-0', job: { resource: 'jobs.batch', name: 'train', uid: 'u' }, endedAt: '2026-01-02T03:04:05Z', exitCode: 137, signal: null, reason: 'OOMKilled', devices: [{ driver: 'gpu.nvidia.com', pool: 'n', device: 'gpu-0' }] };
  const { kc } = answering([{ uid: 'u', deletedAt: '2026-01-02T03:04:06Z', hours: { cpu: 1.5, memory: 4, gpu: 0 }, podFailures: 1, podCount: 2, pods: [pod] }, { uid: 'old', hours: null, podFailures: null, preemptions: null, podCount: null }]);
  const { items } = await pastJobs(kc, jobs, { uid: 'u' });
  expect(items[0]).toMatchObject({ deletedAt: Date.UTC(2026, 0, 2, 3, 4, 6), hours: { cpu: 1.5, memory: 4, gpu: 0 }, podFailures: 1, podCount: 2 });
  expect(items[0]?.pods).toMatchObject([{ uid: 'p', endedAt: Date.UTC(2026, 0, 2, 3, 4, 5), startedAt: undefined, exitCode: 137, signal: undefined, devices: [{ device: 'gpu-0' }] }]);
  expect(items[1]).toMatchObject({ deletedAt: undefined, hours: null, podFailures: null, preemptions: null, podCount: null, pods: undefined });
});

test('what is summed up has its steps as times, and none where all of the time is one', async () => {
  const { kc } = answering([{ key: 'OOMKilled', from: '2026-01-02T03:00:00Z', jobs: 2, waitedSeconds: null, ranSeconds: { count: 2, p50: 1, p90: 2, max: 3 }, cpuHours: 1, memoryHours: 2, gpuHours: 3, hoursUnknown: 1, succeeded: 4, failed: 5, cancelled: 6 }, { key: '', from: null }]);
  const [usage, whole] = await pastUsage(kc, jobs, { by: 'cause' });
  expect(usage).toEqual({ key: 'OOMKilled', from: Date.UTC(2026, 0, 2, 3), jobs: 2, waitedSeconds: null, ranSeconds: { count: 2, p50: 1, p90: 2, max: 3 }, cpuHours: 1, memoryHours: 2, gpuHours: 3, hoursUnknown: 1 });
  expect(whole).toMatchObject({ key: '', from: undefined });
  expect((await pastEnds(kc, jobs, {}))[0]).toEqual({ key: 'OOMKilled', from: Date.UTC(2026, 0, 2, 3), succeeded: 4, failed: 5, cancelled: 6 });
});

test('who shows the jobs of a cause is told also of those that leave it', () => {
  const followed: string[] = [];
  const follow = (source: { readonly path: string }): object => (followed.push(source.path), { subscribe: () => () => undefined, getSnapshot: () => ({ data: [] }) });
  pastOf({ follow } as unknown as Kubecast, jobs, { owner: 'me', uid: 'u', causes: ['OOMKilled'] });
  expect(followed).toEqual(['/history/apis/batch/v1/jobs?view=transitions&owner=me&uid=u']);
});

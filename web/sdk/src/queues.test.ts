import { expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch, type ScriptedRequest } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { pastJobs } from './history.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { queue, queuesOf, type QueueWithJobs } from './queues.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const nobody = (): void => undefined;
const asked = (path: string): ScriptedRequest[] => server.requests.filter(({ url }) => url === path);
const answer = (path: string, body: object, status = 200): void => asked(path).at(-1)?.refuse(status, {}, JSON.stringify(body));

const gpu = {
  name: 'gpu', namespace: 'team-a', kind: 'LocalQueue', clusterQueue: 'all', cohort: 'lab', waiting: 2, running: 1,
  resources: [{ flavor: 'a100', resource: 'nvidia.com/gpu', quota: '8', used: '6', borrowed: null }],
};
const mine = { position: 1, clusterPosition: 3, namespace: 'team-a', queue: 'gpu', resource: 'jobs.batch', name: 'train', uid: 'u', owner: 'mara', since: '2030-01-01T00:00:00Z', requests: { cpu: '4' } };
const starts = { from: '2030-01-01T00:10:00Z', to: '2030-01-01T00:25:00Z', confidence: 0.8 };
const told = (id: string, ...waiting: object[]): string => frame('w0.queue', id, { ...gpu, jobs: waiting });

/** Who waits where, by what the page shows. */
function watched(): { readonly now: () => string; readonly watch: Watch<QueueWithJobs> } {
  const watch = kc.follow(queue('team-a', 'gpu'));
  watch.subscribe(nobody);
  const now = (): string => {
    const { status, reason, data } = watch.getSnapshot();
    return `${reason ?? status} ${data.flatMap((one) => one.jobs.map((job) => `${job.position} ${job.hidden ? '?' : job.name}`)).join()}`.trim();
  };
  return { now, watch };
}

test('a queue is the path that it means, of a namespace, of the cluster, of a cluster by its name', () => {
  expect([queue('team-a', 'gpu'), queue('', 'all', { limit: 5 }), queue('a', 'b', { cluster: 'west/1' })].map(({ path }) => path)).toEqual([
    '/queues/team-a/gpu', '/queues/all?limit=5', '/clusters/west%2F1/queues/a/b',
  ]);
});

test('who waits is what was told last, strangers are places, and after a cut it is live once it is told anew', async () => {
  const { now, watch } = watched();
  await pass();
  expect(new URL(server.last.url, 'http://x').searchParams.get('w0')).toBe('/queues/team-a/gpu');
  let body = server.last.accept(told('e.w0-1', { ...mine, starts }, { position: 2, hidden: true }));
  await pass();
  expect(now()).toBe('live 1 train,2 ?');
  expect(watch.getSnapshot().data[0]).toMatchObject({
    cohort: 'lab', stopped: false, resources: [{ quota: '8', borrowed: null }],
    jobs: [{ clusterPosition: 3, since: Date.UTC(2030, 0), starts: { from: Date.UTC(2030, 0, 1, 0, 10), confidence: 0.8 } }, { hidden: true, position: 2 }],
  });
  body.push(told('e.w0-2', { position: 1, hidden: true }, { ...mine, position: 2, starts: null }));
  await pass();
  expect(now()).toBe('live 1 ?,2 train');
  body.break();
  await pass(2_000);
  expect(now()).toBe('reconnecting 1 ?,2 train');
  body = server.last.accept(frame('w1.bookmark', 'e.w0-2', {})); // of another watch
  await pass();
  expect(now()).toBe('catching-up 1 ?,2 train');
  body.push(told('e.w0-4', mine)); // and no bookmark
  await pass();
  expect(now()).toBe('live 1 train');
});

test('a queue that cannot be read is asked for anew, and not shown half', async () => {
  const { now } = watched();
  await pass();
  server.last.accept(told('e.w0-1', mine), frame('w0.queue', 'e.w0-2', { name: 'gpu' }));
  await pass(2_000);
  expect(server.last.headers.get('last-event-id')).toBeNull();
  server.last.accept(told('e.w0-3', mine));
  await pass();
  expect(now()).toBe('live 1 train');
});

test('a queue that is not there has failed, and the rest of the page goes on', async () => {
  const { now } = watched();
  const rest = kc.watch(jobs);
  rest.subscribe(nobody);
  await pass();
  server.last.refuse(404, {}, JSON.stringify({ detail: 'there is no such queue, or you may not list it' }));
  await pass();
  for (const path of ['/queues/team-a/gpu', '/apis/batch/v1/jobs']) answer(path, {}, path.startsWith('/queues') ? 404 : 200);
  await pass(2_000);
  expect(now()).toBe('failed');
  server.last.accept(frame('w1.synced', 'e.w1-1', { resourceVersion: '1', count: 0 }));
  await pass();
  expect(rest.getSnapshot().status).toBe('live');
});

test('a list of queues is followed where there are any, and what was answered is there until it is told', async () => {
  const list = queuesOf(kc);
  expect(queuesOf(kc)).toBe(list);
  const leave = list.subscribe(nobody);
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'loading', data: [] });
  const all = { name: 'all', kind: 'ClusterQueue', stopped: true, resources: null };
  answer('/queues', { items: [gpu] });
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up', data: [{ name: 'gpu', running: 1 }] });
  const body = server.last.accept(frame('w0.queue', '', { items: [gpu, all] }));
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'live', data: [{ name: 'gpu' }, { name: 'all', namespace: '', stopped: true, resources: [], waiting: 0 }] });
  body.push(frame('w0.queue', '', { items: [] }));
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'live', data: [] });
  leave();
  await pass(6_000);
  expect(server.requests.filter(({ aborted }) => !aborted)).toHaveLength(1); // the one that was answered
});

test('where there are no queues it is asked once, be it that the gateway knows of none or that the cluster has none', async () => {
  for (const [cluster, status, body] of [[undefined, 200, { items: [] }], ['old', 404, { detail: 'nothing is here' }]] as const) {
    const list = queuesOf(kc, { cluster });
    list.subscribe(nobody);
    await pass();
    const path = cluster ? `/clusters/${cluster}/queues` : '/queues';
    answer(path, body, status);
    await pass(120_000);
    expect(list.getSnapshot()).toMatchObject({ status: 'live', data: [] });
    expect(asked(path)).toHaveLength(1);
  }
});

test('a list of queues that may not be seen is denied in the words of the gateway, and asked for again when somebody wants that', async () => {
  const list = queuesOf(kc);
  const told = vi.fn();
  list.subscribe(told);
  await pass();
  answer('/queues', { detail: 'you may list neither localqueues nor clusterqueues' }, 403);
  await pass(120_000);
  expect(list.getSnapshot()).toMatchObject({ status: 'denied', data: [], error: { reason: 'queues', message: 'you may list neither localqueues nor clusterqueues' } });
  expect(asked('/queues')).toHaveLength(1); // no attempt heals it
  expect(told).toHaveBeenCalledTimes(1);
  list.retry();
  await pass();
  answer('/queues', { items: [gpu] });
  await pass();
  expect(list.getSnapshot()).toMatchObject({ data: [{ name: 'gpu' }], error: undefined });
});

/** Queues that were shown, then denied, and are asked for again. */
async function deniedAndRetried(): Promise<ReturnType<typeof queuesOf>> {
  const list = queuesOf(kc);
  list.subscribe(() => list.getSnapshot());
  await pass();
  answer('/queues', { items: [gpu] });
  await pass();
  server.last.accept(frame('w0.queue', 'e.1', { items: [gpu] }), frame('w0.goodbye', 'e.1', { reason: 'revoked' }));
  await pass(60_000);
  server.last.refuse(403, {}, JSON.stringify({ detail: 'not for you' }));
  await pass();
  server.last.refuse(403); // asked whether it is this one
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'denied', data: [] });
  list.retry();
  await pass();
  return list;
}

test('queues that were denied are not shown again before they are read anew', async () => {
  const list = await deniedAndRetried();
  expect(list.getSnapshot()).toMatchObject({ status: 'loading', data: [] });
  answer('/queues', { items: [gpu] });
  await pass();
  expect(list.getSnapshot().data).toMatchObject([{ name: 'gpu' }]);
});

test.each([[503], [403]])('queues that were denied stay hidden where reading them anew fails with %i', async (status) => {
  const list = await deniedAndRetried();
  answer('/queues', { detail: 'not now' }, status);
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: status === 403 ? 'denied' : 'loading', data: [], error: { message: 'not now' } });
});

test('queues that may not be read any more are not shown while the stream is on its way', async () => {
  const list = queuesOf(kc);
  const leave = list.subscribe(() => list.getSnapshot());
  await pass();
  answer('/queues', { items: [gpu] });
  await pass();
  expect(list.getSnapshot()).toMatchObject({ reason: 'catching-up', data: [{ name: 'gpu' }] });
  list.retry();
  await pass(1_000);
  answer('/queues', { detail: 'not for you' }, 403);
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'denied', data: [], error: { message: 'not for you' } });
  leave();
});

test('a job of the history says where it waits, and one that waits nowhere keeps the name of its queue', async () => {
  const read = pastJobs(kc, jobs, { owner: 'me' });
  await pass();
  answer('/history/apis/batch/v1/jobs?owner=me', {
    items: [{ name: 'train', queue: { name: 'gpu', position: 2, clusterPosition: null, starts } }, { name: 'run', queue: 'gpu' }], continue: '',
  });
  expect((await read).items).toMatchObject([
    { queue: 'gpu', place: { position: 2, clusterPosition: null, starts: { to: Date.UTC(2030, 0, 1, 0, 25), confidence: 0.8 } } },
    { queue: 'gpu', place: undefined },
  ]);
});

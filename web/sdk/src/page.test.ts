import { expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { counts } from './counts.ts';
import type { Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { page } from './page.ts';
import { defineResource } from './resource.ts';

type Job = KubeObject & { readonly spec?: { readonly queue?: string }; readonly status?: { readonly phase?: string } };
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;

eachPage((made) => ({ server, kc } = made));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const told = (type: string, uid: string, id = 'e'): string => frame(`w0.${type}`, id, { metadata: { name: uid, uid, resourceVersion: '1' } });
const turned = (uids: string[], total: number, id: string, offset = 0): string => frame('w0.page', id, { uids, offset, total, resourceVersion: '1' });

test('a page is the path that it means', () => {
  expect(page(jobs, { namespace: 'a', search: 'x', sort: ['-metadata.creationTimestamp', 'metadata.name'], limit: 50, offset: 100 }).path).toBe(
    '/apis/batch/v1/namespaces/a/jobs?search=x&limit=50&offset=100&sort=-metadata.creationTimestamp%2Cmetadata.name',
  );
  expect(counts(jobs, ['status.phase', 'spec.queue'], { labels: 'a=b', limit: 5 }).path).toBe('/apis/batch/v1/jobs?labelSelector=a%3Db&countBy=status.phase%2Cspec.queue&limit=5');
});

test('the old page stays in sight until the new one is complete', async () => {
  const watch = kc.follow(page(jobs, { limit: 2 }));
  const seen: string[] = [];
  watch.subscribe(() => {
    const { data, total, status } = watch.getSnapshot();
    seen.push(`${status} ${data.map(({ metadata }) => metadata.name).join()} of ${total ?? '?'}`);
  });
  await pass();
  const body = server.last.accept(told('added', 'b'), told('added', 'a'));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'loading', data: [] }); // no page has ended yet
  body.push(turned(['a', 'b'], 3, 'e.w0-1'));
  await pass();
  body.push(told('deleted', 'b', 'e.w0-1'));
  await pass();
  body.push(told('added', 'c', 'e.w0-1'));
  await pass();
  expect(watch.getSnapshot().data.map(({ metadata }) => metadata.name)).toEqual(['a', 'b']);
  body.push(turned(['c', 'a'], 4, 'e.w0-2'));
  await pass();
  expect(seen.filter((text, n) => text !== seen[n - 1])).toEqual(['live a,b of 3', 'live c,a of 4']);
});

test('a row is modified where it stands, by a patch too; beyond the end there is a total without rows', async () => {
  const watch = kc.follow(page(jobs, { limit: 2, deltas: true }));
  watch.subscribe(() => undefined);
  await pass();
  const body = server.last.accept(told('added', 'a'), told('added', 'b'), turned(['b', 'a'], 2, 'e.w0-1'));
  await pass();
  const [b] = watch.getSnapshot().data;
  body.push(frame('w0.patched', 'e.w0-2', { uid: 'a', resourceVersion: '2', patch: { status: { phase: 'Running' } } }));
  await pass();
  expect(watch.getSnapshot().data[1]).toMatchObject({ metadata: { name: 'a', resourceVersion: '2' }, status: { phase: 'Running' } });
  expect(watch.getSnapshot().data[0]).toBe(b);
  body.push(told('deleted', 'a', 'e.w0-2') + told('deleted', 'b', 'e.w0-2') + turned([], 0, 'e.w0-3'));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', data: [], total: 0 });
  body.push(turned([], 7, 'e.w0-4', 10)); // others, on the pages before
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ data: [], total: 7, offset: 10 });
});

test('who is cut off within a batch keeps the page, and repairs it', async () => {
  const watch = kc.follow(page(jobs, { limit: 2 }));
  watch.subscribe(() => undefined);
  await pass();
  const body = server.last.accept('retry: 100\n\n', told('added', 'a'), told('added', 'b'), turned(['a', 'b'], 2, 'e.w0-1'), told('deleted', 'a', 'e.w0-1'));
  await pass();
  body.break();
  await pass(100);
  expect(server.last.headers.get('Last-Event-ID')).toBe('e.w0-1');
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', total: 2 });
  server.last.accept(told('added', 'c', 'e.w0-1'), turned(['a', 'c'], 2, 'e.w0-2'), frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', total: 2, data: [{ metadata: { name: 'a' } }, { metadata: { name: 'c' } }] });
});

test('a page that names what was never told is asked for anew', async () => {
  const watch = kc.follow(page(jobs, { limit: 2 }));
  watch.subscribe(() => undefined);
  await pass();
  server.last.accept('retry: 100\n\n', told('added', 'a'), turned(['a', 'b'], 2, 'e.w0-1'));
  await pass(100);
  expect(server.requests).toHaveLength(2);
  expect(server.last.headers.has('Last-Event-ID')).toBe(false);
  server.last.accept(told('added', 'a'), told('added', 'b'), turned(['a', 'b'], 2, 'e.w0-1'));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', total: 2 });
});

test('counts are what was told last, and old until they are told again without a position', async () => {
  const watch = kc.follow(counts(jobs, ['status.phase', 'spec.queue']));
  watch.subscribe(() => undefined);
  await pass();
  const body = server.last.accept(
    'retry: 100\n\n',
    frame('w0.stale', 'e', { since: '2026-01-01T00:00:00Z', reason: 'unreachable' }),
    frame('w0.counts', 'e.w0-1', { counts: [{ values: ['Running', ''], count: 3 }], resourceVersion: '1' }),
  );
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', data: [{ value: 'Running', values: ['Running', ''], count: 3 }] });
  body.push(frame('w0.live', 'e.w0-1', { since: '2026-01-01T00:00:00Z', reason: 'live' }) + frame('w0.counts', 'e.w0-2', { counts: [], resourceVersion: '2' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', data: [] });
  body.push(frame('w0.counts', 'e.w0-3', { counts: [{ value: '', count: 1 }], resourceVersion: '3' }));
  await pass();
  expect(watch.getSnapshot().data).toEqual([{ value: '', values: [''], count: 1 }]);
});

test('who may not see a page is shown none of it, nor how long it was', async () => {
  const watch = kc.follow(page(jobs, { limit: 2 }));
  watch.subscribe(() => undefined);
  await pass();
  const body = server.last.accept('retry: 100\n\n', told('added', 'a'), turned(['a'], 1, 'e.w0-1'));
  await pass();
  body.break();
  await pass(100);
  server.last.refuse(403);
  await pass();
  server.last.refuse(403);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'denied', data: [], error: { reason: 'http:403' } });
  expect(watch.getSnapshot().total).toBeUndefined();
});

test('a page that is told anew is old until then, and live behind that without another word', async () => {
  const watch = kc.follow(page(jobs, { limit: 2 }));
  watch.subscribe(() => undefined);
  await pass();
  const all = (n: number): string => told('added', 'a', `e.w0-${n}`) + turned(['a'], 1, `e.w0-${n}`);
  const body = server.last.accept(all(1));
  await pass();
  expect(watch.getSnapshot().status).toBe('live');
  body.break();
  await pass(30_000);
  const again = server.last.accept(frame('w0.reset', 'e', { reason: 'tabs' }));
  await pass();
  expect(watch.getSnapshot().status).toBe('stale');
  again.push(all(2));
  await pass();
  expect(watch.getSnapshot().status).toBe('live');
});

test('counts that are told anew are old until then, and live behind that without another word', async () => {
  const watch = kc.follow(counts(jobs, ['status.phase']));
  watch.subscribe(() => undefined);
  await pass();
  const all = (n: number): string => frame('w0.counts', `e.w0-${n}`, { counts: [{ value: 'Running', count: n }] });
  const body = server.last.accept(all(1));
  await pass();
  expect(watch.getSnapshot().status).toBe('live');
  body.break();
  await pass(30_000);
  const again = server.last.accept(frame('w0.reset', 'e', { reason: 'tabs' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up' });
  again.push(all(2));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', data: [{ count: 2 }] });
  again.push(frame('w0.reset', 'e', { reason: 'tabs' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', data: [{ count: 2 }] });
});

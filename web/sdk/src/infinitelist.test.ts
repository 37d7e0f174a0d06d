// A live list that grows page by page, whatever happens between its pages.

import { expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch, type ScriptedRequest } from '../../mock/fetch.ts';
import { MockGateway } from '../../mock/gateway.ts';
import { eachPage } from '../../mock/page.ts';
import { seededRandom } from '../../mock/random.ts';
import { infiniteListOf, type InfiniteList } from './infinitelist.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const streams = (): ScriptedRequest[] => server.requests.filter(({ url }) => url.startsWith('/stream'));
/** The pages that the last stream was asked for, by their names. */
const asked = (): Record<string, string> => Object.fromEntries([...new URLSearchParams(streams().at(-1)?.url.split('?')[1])].filter(([key]) => key !== 'heartbeat'));
const told = (watch: string, uid: string, id = 'e'): string => frame(`${watch}.added`, id, { metadata: { name: uid, uid, resourceVersion: '1' } });
const turned = (watch: string, uids: readonly string[], total: number, id: string, offset = 0): string => frame(`${watch}.page`, id, { uids, offset, total, resourceVersion: '1' });
const pageOf = (watch: string, uids: readonly string[], total: number, id: string, offset = 0): string => uids.map((uid) => told(watch, uid)).join('') + turned(watch, uids, total, id, offset);
const names = (list: InfiniteList<KubeObject>): string => list.getSnapshot().data.map(({ metadata }) => metadata.name).join('');

async function begun(): Promise<{ readonly list: InfiniteList<KubeObject>; readonly body: ScriptedBody | undefined; readonly leave: () => void }> {
  const list = infiniteListOf(kc, jobs, { limit: 2 });
  const leave = list.subscribe(() => undefined);
  await pass();
  expect(asked()).toEqual({ w0: '/apis/batch/v1/jobs?limit=2' });
  const body = streams().at(-1)?.accept('retry: 100\n\n', pageOf('w0', ['a', 'b'], 5, 'e.w0-1'));
  await pass();
  return { list, body, leave };
}

/** The stream is asked for anew, with more pages; what is there goes on. */
async function more(...chunks: string[]): Promise<ScriptedBody | undefined> {
  await pass();
  expect(streams().at(-1)?.headers.get('Last-Event-ID')).toContain('w0-');
  const body = streams().at(-1)?.accept('retry: 100\n\n', ...chunks);
  await pass();
  return body;
}

test('all that is shown is one page of the gateway, which stays in sight until the longer one is complete', async () => {
  const { list } = await begun();
  expect(infiniteListOf(kc, jobs, { limit: 2 })).toBe(list);
  expect(list.getSnapshot()).toMatchObject({ status: 'live', total: 5, hasNextPage: true, isFetchingNextPage: false, nextPageError: undefined });
  expect(list.getSnapshot()).toBe(list.getSnapshot());
  list.fetchNextPage();
  list.fetchNextPage();
  const next = await more(told('w1', 'a'), told('w1', 'b'), told('w1', 'c'));
  expect(asked()).toEqual({ w0: '/apis/batch/v1/jobs?limit=2', w1: '/apis/batch/v1/jobs?limit=4' });
  expect(names(list)).toBe('ab');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: true });
  next?.push(told('w1', 'd') + turned('w1', ['a', 'b', 'c', 'd'], 5, 'e.w0-1.w1-1'));
  await pass();
  expect(names(list)).toBe('abcd');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', total: 5, hasNextPage: true, isFetchingNextPage: false });
  // A row that comes is where it belongs, at once, and the last one has left: none is there twice.
  next?.push(told('w1', 'x', 'e.w0-1.w1-1') + frame('w1.deleted', 'e.w0-1.w1-1', { metadata: { name: 'd', uid: 'd' } }) + turned('w1', ['a', 'x', 'b', 'c'], 6, 'e.w0-1.w1-2'));
  await pass();
  expect(names(list)).toBe('axbc');
});

test('a row that comes while the next page is under way is shown at once, and once', async () => {
  const { list } = await begun();
  list.fetchNextPage();
  const next = await more(told('w1', 'a'), told('w0', 'x', 'e.w0-1') + turned('w0', ['x', 'a'], 6, 'e.w0-2'));
  expect(names(list)).toBe('xa');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', total: 6, isFetchingNextPage: true });
  next?.push(pageOf('w1', ['x', 'a', 'b', 'c'], 6, 'e.w0-2.w1-2'));
  await pass();
  expect(names(list)).toBe('xabc');
});

test('where the list is as long as it is shown, there is no next page, until there is', async () => {
  const { list } = await begun();
  list.fetchNextPage();
  const next = await more(pageOf('w1', ['a', 'b', 'c'], 3, 'e.w0-1.w1-1'));
  expect(list.getSnapshot()).toMatchObject({ total: 3, hasNextPage: false });
  const before = streams().length;
  list.fetchNextPage();
  await pass();
  expect(streams()).toHaveLength(before);
  next?.push(told('w1', 'd', 'e.w0-1.w1-1') + turned('w1', ['a', 'b', 'c', 'd'], 5, 'e.w0-1.w1-2'));
  await pass();
  expect(list.getSnapshot()).toMatchObject({ total: 5, hasNextPage: true });
});

test('a connection that is lost while the next page is under way leaves the rows, and brings both', async () => {
  const { list } = await begun();
  list.fetchNextPage();
  const next = await more(told('w1', 'a', 'e.w0-1'));
  next?.break();
  await pass(100);
  expect(list.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', data: [{}, {}], isFetchingNextPage: true });
  streams().at(-1)?.refuse(503);
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'stale', data: [{}, {}], isFetchingNextPage: true, nextPageError: { reason: 'http:503' } });
  await pass(60_000);
  await more(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }), pageOf('w1', ['a', 'b', 'c', 'd'], 5, 'e.w0-2.w1-2') + frame('w1.bookmark', 'e.w0-2.w1-2', { resourceVersion: '2' }));
  expect(names(list)).toBe('abcd');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: false, nextPageError: undefined });
});

test('a page that is refused leaves the rows, which stay live, and is asked for again by whoever wants it', async () => {
  const { list } = await begun();
  list.fetchNextPage();
  await pass();
  streams().at(-1)?.refuse(403);
  await pass();
  for (const request of server.requests.filter(({ url }) => url.startsWith('/apis'))) {
    if (request.url.includes('limit=4')) request.refuse(403, {}, JSON.stringify({ message: 'no more' }));
    else request.accept();
  }
  await pass();
  await more(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }));
  expect(names(list)).toBe('ab');
  expect(asked()).toEqual({ w0: '/apis/batch/v1/jobs?limit=2' });
  expect(list.getSnapshot()).toMatchObject({ status: 'live', hasNextPage: true, isFetchingNextPage: false, nextPageError: { reason: 'http:403' } });
  list.fetchNextPage();
  expect(list.getSnapshot()).toMatchObject({ isFetchingNextPage: true, nextPageError: undefined });
  await pass();
  const [, name = ''] = Object.keys(asked());
  const next = await more(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }), pageOf(name, ['a', 'b', 'c', 'd'], 5, 'e.w0-2.w1-2'));
  expect(list.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: true }); // it may be as of before
  next?.push(frame(`${name}.bookmark`, 'e.w0-2.w1-2', { resourceVersion: '2' }));
  await pass();
  expect(names(list)).toBe('abcd');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: false, nextPageError: undefined });
});

test('a list that may not be seen any more shows nothing, however far it was', async () => {
  const { list, body } = await begun();
  body?.break();
  await pass(100);
  server.last.refuse(403);
  await pass();
  server.last.refuse(403);
  await pass();
  expect(list.getSnapshot()).toMatchObject({ status: 'denied', data: [], hasNextPage: false, isFetchingNextPage: false, error: { reason: 'http:403' } });
  expect(list.getSnapshot().total).toBeUndefined();
});

test('who comes back at once finds it as long as it was; who comes later begins with the first page', async () => {
  const { list, leave } = await begun();
  list.fetchNextPage();
  await more(pageOf('w1', ['a', 'b', 'c', 'd'], 5, 'e.w0-1.w1-1'));
  leave();
  await pass(1_000);
  const again = list.subscribe(() => undefined);
  expect(names(list)).toBe('abcd');
  again();
  await pass(31_000);
  list.subscribe(() => undefined);
  await pass();
  expect(Object.values(asked())).toEqual(['/apis/batch/v1/jobs?limit=2']);
});

test('a page that comes while nobody looks is there for who comes back', async () => {
  const { list, leave } = await begun();
  list.fetchNextPage();
  const next = await more(told('w1', 'a'));
  leave();
  await pass(1_000);
  next?.push(['b', 'c', 'd'].map((uid) => told('w1', uid)).join('') + turned('w1', ['a', 'b', 'c', 'd'], 5, 'e.w0-1.w1-1'));
  await pass(1_000);
  list.subscribe(() => undefined);
  expect(names(list)).toBe('abcd');
  expect(list.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: false, hasNextPage: true });
});

test('who comes later is not told of a page that was refused then', async () => {
  const { list, leave } = await begun();
  list.fetchNextPage();
  await pass();
  streams().at(-1)?.refuse(403);
  await pass();
  for (const request of server.requests.filter(({ url }) => url.startsWith('/apis'))) request.refuse(request.url.includes('limit=4') ? 403 : 200);
  await pass();
  await more(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }));
  expect(list.getSnapshot().nextPageError?.reason).toBe('http:403');
  leave();
  await pass(31_000);
  list.subscribe(() => undefined);
  expect(list.getSnapshot().nextPageError).toBeUndefined();
});

test.each([450, 1_500, 9_999, Infinity])('no more than 2,000 rows are asked for, by %d at a time', async (limit) => {
  const list = infiniteListOf(kc, jobs, { limit });
  list.subscribe(() => undefined);
  let reach = 0;
  for (let n = 0; n < 8; n++) {
    await pass();
    const pages = Object.entries(asked());
    for (const [, path] of pages) {
      const places = new URLSearchParams(path.split('?')[1]);
      reach = Math.max(reach, Number(places.get('offset')) + Number(places.get('limit')));
    }
    streams().at(-1)?.accept('retry: 100\n\n', ...pages.map(([name]) => pageOf(name, ['a'], 9_999, 'e')));
    await pass();
    list.fetchNextPage();
  }
  expect(reach).toBe(2_000);
  expect(list.getSnapshot()).toMatchObject({ total: 9_999, hasNextPage: false, isFetchingNextPage: false });
});

test('who scrolls fast takes no stream from the rest of the page: what is passed makes room when there is no more', async () => {
  vi.useRealTimers();
  const gateway = new MockGateway();
  for (let n = 0; n < 150; n++) gateway.cluster.put('jobs', { metadata: { name: `job-${n}`, namespace: 'team-a' } });
  const client = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 60_000 });
  const other = client.watch(defineResource<KubeObject>()({ version: 'v1', plural: 'pods' }));
  const seen = new Set<string>();
  const leave = other.subscribe(() => seen.add(other.getSnapshot().status));
  const list = infiniteListOf(client, jobs, { limit: 4 });
  const end = list.subscribe(() => undefined);
  await vi.waitFor(() => expect([list.getSnapshot().status, other.getSnapshot().status]).toEqual(['live', 'live']), 20_000);
  seen.clear();
  while (list.getSnapshot().hasNextPage) {
    list.fetchNextPage();
    await vi.waitFor(() => expect(list.getSnapshot().isFetchingNextPage).toBe(false), { timeout: 20_000, interval: 5 });
  }
  expect(list.getSnapshot().data).toHaveLength(150);
  expect([...seen].filter((status) => status !== 'live')).toEqual([]);
  const carried = gateway.requests.map(({ url }) => new URLSearchParams(url.split('?')[1]).size - 1); // and its heartbeat
  expect(carried.filter((count) => count > 32)).toEqual([]);
  expect(carried).toContain(32);
  end();
  leave();
  client.close();
});

test('what a page more than 500 rows needs is a second one that begins within the first, and each row is there once', async () => {
  const uids = Array.from({ length: 700 }, (_, n) => `u${n}`);
  const list = infiniteListOf(kc, jobs, { limit: 400, sort: ['metadata.name'] });
  list.subscribe(() => undefined);
  await pass();
  streams().at(-1)?.accept('retry: 100\n\n', pageOf('w0', uids.slice(0, 400), 700, 'e.w0-1'));
  await pass();
  list.fetchNextPage();
  const at = await more(pageOf('w1', uids.slice(0, 500), 700, 'e.w0-1.w1-1'), pageOf('w2', uids.slice(480), 700, 'e.w0-1.w1-1.w2-1', 480));
  expect(asked()).toMatchObject({ w1: '/apis/batch/v1/jobs?limit=500&sort=metadata.name', w2: '/apis/batch/v1/jobs?limit=320&offset=480&sort=metadata.name' });
  const shown = (): string[] => list.getSnapshot().data.map(({ metadata }) => metadata.uid);
  expect(shown()).toEqual(uids);
  // The first page is told of a new row before the second one is.
  const first = ['new', ...uids.slice(0, 499)];
  at?.push(told('w1', 'new', 'e') + turned('w1', first, 701, 'e.w0-1.w1-2.w2-1'));
  await pass();
  expect(shown()).toEqual(['new', ...uids]);
  // And the second one of one that goes, before the first one is.
  const rest = uids.slice(480).filter((uid) => uid !== 'u490');
  at?.push(frame('w2.deleted', 'e', { metadata: { name: 'u490', uid: 'u490' } }) + turned('w2', rest, 700, 'e.w0-1.w1-2.w2-2', 480));
  await pass();
  expect(shown()).toEqual(['new', ...uids]);
});

test('whatever comes, goes and is cut while it grows: what is shown in the end is the list as far as it reaches, without a row twice at any time', async () => {
  vi.useRealTimers();
  const random = seededRandom(35);
  const gateway = new MockGateway();
  const put = (): void => void gateway.cluster.put('jobs', { metadata: { name: `job-${Math.floor(random() * 60)}`, namespace: 'team-a' } });
  for (let n = 0; n < 60; n++) put();
  const client = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0 });
  const list = infiniteListOf(client, jobs, { limit: 7 });
  let twice = 0;
  const leave = list.subscribe(() => {
    const uids = list.getSnapshot().data.map(({ metadata }) => metadata.uid);
    if (new Set(uids).size < uids.length) twice++;
  });
  await vi.waitFor(() => expect(list.getSnapshot().status).toBe('live'), 20_000);
  for (let step = 0; step < 60; step++) {
    if (random() < 0.3) list.fetchNextPage();
    if (random() < 0.5) put();
    const all = gateway.cluster.list('jobs', 'batch');
    if (random() < 0.4) gateway.cluster.remove('jobs', all[Math.floor(random() * all.length)]?.metadata.uid ?? '');
    if (random() < 0.1) gateway.fault.cut({ within: true });
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
  await vi.waitFor(() => {
    const { data, status, isFetchingNextPage, hasNextPage, total } = list.getSnapshot();
    const all = gateway.cluster.list('jobs', 'batch').map(({ metadata }) => metadata.name).sort();
    expect({ status, isFetchingNextPage, total }).toEqual({ status: 'live', isFetchingNextPage: false, total: all.length });
    expect(data.map(({ metadata }) => metadata.name)).toEqual(all.slice(0, data.length));
    expect(data.length).toBeGreaterThan(7);
    expect(hasNextPage).toBe(data.length < all.length);
  }, 20_000);
  expect(twice).toBe(0);
  leave();
  client.close();
});

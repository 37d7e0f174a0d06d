// A history that grows page by page, whatever happens between its pages.

import { expect, test, vi } from 'vitest';
import type { ScriptedBody, ScriptedFetch, ScriptedRequest } from '../../mock/fetch.ts';
import { frame } from '../../mock/fetch.ts';
import { MockGateway } from '../../mock/gateway.ts';
import { eachPage } from '../../mock/page.ts';
import { MockPast } from '../../mock/past.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { pastOf, type Past } from './past.ts';
import { ready } from './ready.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const lists = (): ScriptedRequest[] => server.requests.filter(({ url }) => url.startsWith('/history'));
const asked = (): string => lists().at(-1)?.url.split('?')[1] ?? '';
const items = (names: string): object[] => names.split('').map((name) => ({ name, uid: name, state: 'Running' }));
const answer = (names: string, rest = ''): void => lists().at(-1)?.refuse(200, {}, JSON.stringify({ items: items(names), continue: rest }));
const refuse = (status: number): void => lists().at(-1)?.refuse(status, {}, JSON.stringify({ message: `no: ${status}` }));
const told = (seq: number, uid = 'x'): string => frame('w0.transition', `e.w0-${seq}`, { seq: String(seq), name: uid, uid, to: 'Running', at: '2026-01-01T00:00:00Z' });
const names = (past: Past): string => past.getSnapshot().data.map(({ name }) => name).join('');

/** The first page is there, and the stream. */
async function begun(names = 'fe', rest = 'behind-e'): Promise<{ readonly past: Past; readonly body: ScriptedBody | undefined; readonly leave: () => void }> {
  const past = pastOf(kc, jobs, { limit: 2 });
  const leave = past.subscribe(() => undefined);
  await pass();
  answer(names, rest);
  const body = server.requests.find(({ url }) => url.startsWith('/stream'))?.accept('retry: 100\n\n', frame('w0.synced', 'e.w0-1', { seq: '1', count: 0 }));
  await pass(1_000);
  return { past, body, leave };
}

test('the next page stands behind those that are there, once, until there is none', async () => {
  const { past } = await begun();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', hasNextPage: true, isFetchingNextPage: false, nextPageError: undefined, more: true });
  past.fetchNextPage();
  past.fetchNextPage();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: true });
  await pass(1_000);
  expect(lists()).toHaveLength(2);
  expect(asked()).toBe('limit=2&continue=behind-e');
  answer('dc', 'behind-c');
  await pass();
  expect(names(past)).toBe('fedc');
  expect(past.getSnapshot()).toMatchObject({ hasNextPage: true, isFetchingNextPage: false });
  expect(past.getSnapshot()).toBe(past.getSnapshot());
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- as long as it is there
  expect(past.getSnapshot().jobs).toBe(past.getSnapshot().data);
  past.fetchNextPage();
  await pass(1_000);
  answer('cb'); // c has come to it as well meanwhile
  await pass();
  expect(names(past)).toBe('fedcb');
  expect(past.getSnapshot()).toMatchObject({ hasNextPage: false, more: false });
  past.fetchNextPage();
  await pass(1_000);
  expect(lists()).toHaveLength(3);
});

test('a job that comes stands in front; what is there is read anew as far as it is shown, in one answer', async () => {
  const { past, body } = await begun();
  past.fetchNextPage();
  await pass(1_000);
  answer('dc', 'behind-c');
  body?.push(told(2, 'g'));
  await pass(1_000);
  expect(asked()).toBe('limit=4');
  answer('gfed', 'behind-d');
  await pass();
  expect(names(past)).toBe('gfed');
  past.fetchNextPage();
  await pass(1_000);
  expect(asked()).toBe('limit=2&continue=behind-d');
  answer('cb');
  await pass();
  expect(names(past)).toBe('gfedcb');
});

test('what is told while a page is under way is read once that is there, and none of it is lost', async () => {
  const { past, body } = await begun();
  past.fetchNextPage();
  await pass(1_000);
  body?.push(told(2, 'g'));
  await pass(1_000);
  expect(lists()).toHaveLength(2); // one at a time
  answer('dc', 'behind-c');
  await pass(1_000);
  expect(names(past)).toBe('fedc');
  expect(asked()).toBe('limit=4');
  past.fetchNextPage(); // and the other way round
  await pass(1_000);
  expect(lists()).toHaveLength(3);
  answer('gfed', 'behind-d');
  await pass(1_000);
  expect(asked()).toBe('limit=2&continue=behind-d');
  answer('cb');
  await pass();
  expect(names(past)).toBe('gfedcb');
});

test('more than the gateway tells at once is read in several answers; a search that found less is asked as often as before', async () => {
  const past = pastOf(kc, jobs, { limit: 800, search: 'x' });
  past.subscribe(() => undefined);
  await pass();
  answer('fe', 'unfinished');
  await pass(1_000);
  past.fetchNextPage();
  await pass(1_000);
  answer('', 'unfinished-too'); // it has found none so far
  await pass();
  expect(past.getSnapshot()).toMatchObject({ hasNextPage: true, isFetchingNextPage: false, data: [{}, {}] });
  past.retry();
  await pass(1_000);
  expect(asked()).toBe('search=x&limit=1000');
  answer('fe', 'unfinished');
  await pass();
  expect(asked()).toBe('search=x&limit=1000&continue=unfinished');
  answer('d', 'unfinished-too');
  await pass(1_000);
  expect(names(past)).toBe('fed');
  expect(lists()).toHaveLength(4);
});

test('a page that fails for a moment leaves the others, and is asked for again', async () => {
  const { past } = await begun();
  past.fetchNextPage();
  await pass(1_000);
  refuse(503);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', error: undefined, data: [{ name: 'f' }, { name: 'e' }], isFetchingNextPage: true, nextPageError: { reason: 'http:503', message: 'no: 503' } });
  await pass(30_000);
  expect(asked()).toBe('limit=2&continue=behind-e');
  lists().at(-1)?.fail();
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: true, nextPageError: { reason: 'network' } });
  past.fetchNextPage(); // somebody does not want to wait
  expect(past.getSnapshot()).toMatchObject({ isFetchingNextPage: true, nextPageError: undefined });
  await pass(500);
  answer('dc');
  await pass();
  expect(names(past)).toBe('fedc');
  expect(past.getSnapshot()).toMatchObject({ status: 'live', isFetchingNextPage: false, nextPageError: undefined });
});

test('a page that is refused leaves the others, and is asked for again by whoever wants it only', async () => {
  const { past, body } = await begun();
  past.fetchNextPage();
  await pass(1_000);
  refuse(403);
  await pass(15_000);
  body?.push(': here\n\n');
  await pass(15_000);
  expect(lists()).toHaveLength(2);
  expect(past.getSnapshot()).toMatchObject({ status: 'live', data: [{ name: 'f' }, { name: 'e' }], hasNextPage: true, isFetchingNextPage: false, nextPageError: { reason: 'http:403', message: 'no: 403' } });
  body?.push(told(2));
  await pass(1_000);
  answer('fe', 'behind-e');
  await pass(15_000);
  expect(lists()).toHaveLength(3);
  expect(past.getSnapshot()).toMatchObject({ status: 'live', nextPageError: { reason: 'http:403' } });
  past.fetchNextPage();
  await pass(1_000);
  answer('dc');
  await pass();
  expect(names(past)).toBe('fedc');
  expect(past.getSnapshot().nextPageError).toBeUndefined();
});

test('a token that counts no more is none: all is read from the beginning, the next page with it', async () => {
  const { past } = await begun();
  past.fetchNextPage();
  await pass(1_000);
  refuse(410);
  await pass();
  expect(asked()).toBe('limit=4');
  expect(names(past)).toBe('fe');
  answer('gfed', 'behind-d');
  await pass();
  expect(names(past)).toBe('gfed');
  expect(past.getSnapshot()).toMatchObject({ status: 'live', hasNextPage: true, isFetchingNextPage: false, nextPageError: undefined });
});

test('what may not be seen any more is not shown, however many pages there were', async () => {
  const { past } = await begun();
  past.retry();
  await pass(1_000);
  refuse(403);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'denied', data: [], jobs: [], hasNextPage: false, isFetchingNextPage: false, error: { message: 'no: 403' } });
});

test('what is there and could not be read anew is not called live for the next page', async () => {
  const { past, body } = await begun();
  body?.push(told(2));
  await pass(1_000);
  refuse(503);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', error: { message: 'no: 503' } });
  past.fetchNextPage();
  await pass(1_000);
  expect(asked()).toBe('limit=2');
  answer('gf', 'behind-f');
  await pass();
  expect(asked()).toBe('limit=2&continue=behind-f');
  answer('ed');
  await pass();
  expect(names(past)).toBe('gfed');
  expect(past.getSnapshot().status).toBe('live');
});

test('who leaves while a page is under way, and comes back, has it', async () => {
  const { past, leave } = await begun();
  past.fetchNextPage();
  leave();
  await pass(60_000);
  expect(lists()).toHaveLength(1);
  const again = pastOf(kc, jobs, { limit: 2 });
  again.subscribe(() => undefined);
  await pass();
  answer('fe', 'behind-e');
  await pass();
  expect(asked()).toBe('limit=2&continue=behind-e');
  answer('dc');
  await pass();
  expect(names(again)).toBe('fedc');
});

test('what is told while nobody looks is read by who comes back at once', async () => {
  const { past, body, leave } = await begun();
  leave();
  body?.push(told(2, 'g'));
  await pass(1_000);
  expect(lists()).toHaveLength(1);
  past.subscribe(() => undefined);
  await pass(1_000);
  expect(lists()).toHaveLength(2);
  answer('gf', 'behind-f');
  await pass();
  expect(names(past)).toBe('gf');
});

test('what could not be seen is not shown again while it is not known whether it can be', async () => {
  const { past, body } = await begun();
  past.retry();
  await pass(1_000);
  refuse(403);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'denied', data: [] });
  past.retry();
  await pass(1_000);
  refuse(503);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'loading', reason: undefined, data: [], hasNextPage: false, error: { message: 'no: 503' } });
  await pass(10_000);
  body?.push(': here\n\n');
  answer('fe');
  await pass();
  expect(names(past)).toBe('fe');
  expect(past.getSnapshot()).toMatchObject({ status: 'live', error: undefined });
});

test('where the stream was refused, the list is read anew once it is allowed, also if nothing has happened', async () => {
  const { past, body } = await begun();
  body?.break();
  await pass(200);
  server.last.refuse(403);
  await pass();
  server.last.refuse(403);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'denied', data: [] });
  kc.wake();
  await pass();
  server.last.accept().end(); // it is allowed by now
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'loading', data: [] });
  server.requests.filter(({ url }) => url.startsWith('/stream')).at(-1)?.accept('retry: 100\n\n', frame('w0.bookmark', 'e.w0-1', { seq: '1' }));
  await pass(1_000);
  answer('fe');
  await pass();
  expect(names(past)).toBe('fe');
  expect(past.getSnapshot().status).toBe('live');
});

test('pages of the mock are the list, while jobs come and a stream is cut', async () => {
  vi.useRealTimers();
  const gateway = new MockGateway();
  gateway.past = new MockPast();
  for (let n = 0; n < 25; n++) gateway.past.record(`job-${n}`, 'Running', { at: new Date(1_000_000 * (n + 1)).toISOString() });
  const client = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
  const past = pastOf(client, jobs, { limit: 10 });
  const leave = past.subscribe(() => undefined);
  await ready(past);
  past.fetchNextPage();
  await vi.waitFor(() => expect(past.getSnapshot().data).toHaveLength(20), 20_000);
  gateway.past.record('new', 'Submitted', { at: new Date(100_000_000).toISOString() });
  gateway.fault.cut();
  await vi.waitFor(() => expect(past.getSnapshot()).toMatchObject({ status: 'live', data: { 0: { name: 'new' }, 1: { name: 'job-24' } } }), 20_000);
  past.fetchNextPage();
  await vi.waitFor(() => expect(past.getSnapshot().hasNextPage).toBe(false), 20_000);
  expect(past.getSnapshot().data.map(({ name }) => name)).toEqual(['new', ...Array.from({ length: 25 }, (_, n) => `job-${24 - n}`)]);
  leave();
  client.close();
});

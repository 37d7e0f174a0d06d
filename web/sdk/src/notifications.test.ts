import { expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import type { Kubecast } from './kubecast.ts';
import { inboxOf } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
let body: ScriptedBody;

eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const told = (n: number, more: object = {}): string => {
  const transition = { seq: String(n), namespace: 'n', name: `job-${n}`, to: 'Succeeded', from: 'Running', at: '2030-01-01T00:00:00Z' };
  return frame('w0.notification', `e.w0-${n}`, { id: String(n), at: '2030-01-01T00:00:00Z', kind: 'Succeeded', title: `job-${n}`, transition, digest: null, silent: false, readAt: null, ...more });
};
const marked = (seq: number, data: object): string => frame('w0.read', `e.w0-${seq}`, data);
const synced = (seq: number): string => frame('w0.synced', `e.w0-${seq}`, { seq: String(seq), count: 0 });
const inbox = () => inboxOf(kc).getSnapshot();
const unread = (): string => inbox().data.filter(({ read }) => !read).map(({ id }) => id).join();

/** Follows them, and is told the first three, of which the first is read. */
async function open(): Promise<void> {
  inboxOf(kc).subscribe(() => undefined);
  await pass();
  expect(new URL(server.last.url, 'http://x').searchParams.get('w0')).toBe('/notifications?limit=200');
  body = server.last.accept(told(1, { readAt: '2030-01-01T00:00:01Z' }), told(2), told(3), synced(3));
  await pass();
}

test('the newest come first, and what is read by another device is read here', async () => {
  await open();
  expect(inbox()).toMatchObject({ unread: 2, status: 'live' });
  expect(inbox().data.map(({ id }) => id).join()).toBe('3,2,1');
  // eslint-disable-next-line @typescript-eslint/no-deprecated -- who has written this goes on
  expect(inbox().items).toBe(inbox().data);
  expect(inbox().data[0]).toMatchObject({ kind: 'Succeeded', transition: { name: 'job-3' }, digest: [], silent: false });
  body.push(told(4) + marked(5, { ids: ['2'] }));
  await pass();
  expect(unread()).toBe('4,3');
  body.push(marked(6, { upTo: '3' }));
  await pass();
  expect(unread()).toBe('4');
});

test('what is read, and came, while the stream was away is so afterwards, and nothing is there twice', async () => {
  await open();
  body.break();
  await pass(2_000);
  expect(server.last.headers.get('last-event-id')).toBe('e.w0-3');
  body = server.last.accept(told(3), told(4), marked(5, { upTo: '3', ids: null }), told(6));
  await pass();
  expect(inbox().data.map(({ id }) => id).join()).toBe('6,4,3,2,1');
  expect(unread()).toBe('6,4');
});

test('one that was named last and is not shown here still says which are read', async () => {
  await open();
  body.push(told(12) + marked(13, { upTo: '11' }));
  await pass();
  expect(unread()).toBe('12');
});

test('a snapshot anew is what counts, once it is complete', async () => {
  await open();
  body.push(frame('w0.reset', 'e', { reason: 'expired' }) + told(3, { readAt: '2030-01-01T00:00:09Z' }) + told(9));
  await pass();
  expect([unread(), inbox().reason]).toEqual(['3,2', 'catching-up']);
  body.push(synced(9));
  await pass();
  expect([unread(), inbox().status]).toEqual(['9', 'live']);
});

test('what is marked is read at once, and stays so until the stream says it, too', async () => {
  await open();
  const said: number[] = [];
  inboxOf(kc).subscribe(() => said.push(inbox().unread));
  const marking = inboxOf(kc).markRead({ upTo: '3' });
  expect(inbox().unread).toBe(0);
  await pass();
  expect(server.last.url).toBe('/notifications/read');
  server.last.refuse(204);
  await marking;
  body.push(told(4));
  await pass();
  expect(unread()).toBe('4');
  body.push(marked(5, { upTo: '3' }));
  await pass();
  expect(new Set(said)).toEqual(new Set([0, 1]));
});

test.each([
  ['a refusal', (): void => server.last.refuse(503, {}, JSON.stringify({ detail: 'the database is away' })), 'the database is away'],
  ['no connection', (): void => server.last.fail(), 'fetch failed'],
])('%s takes back what was marked, and says why', async (_, answer, why) => {
  await open();
  const marking = expect(inboxOf(kc).markRead({ ids: ['2'] })).rejects.toThrow(why);
  expect(unread()).toBe('3');
  await pass();
  answer();
  await marking;
  expect(unread()).toBe('3,2');
});

test('a digest has what it gathers', async () => {
  await open();
  const digest = [{ seq: '7', namespace: 'n', name: 'a', to: 'Failed' }, { seq: '8', namespace: 'n', name: 'b', to: 'Succeeded' }];
  body.push(told(4, { kind: 'Digest', transition: null, digest, more: 110, silent: true }));
  await pass();
  expect(inbox().data[0]).toMatchObject({ kind: 'Digest', transition: undefined, more: 110, silent: true, digest: [{ name: 'a', to: 'Failed' }, { name: 'b' }] });
});

test('without a history there are no notifications, and the rest of the page goes on', async () => {
  inboxOf(kc).subscribe(() => undefined);
  const other = kc.watch(jobs);
  other.subscribe(() => undefined);
  await pass();
  server.last.refuse(404);
  await pass();
  const [first, second] = server.requests.slice(-2);
  first?.refuse(404);
  second?.accept();
  await pass();
  server.last.accept(frame('w1.synced', 'e.w1-1', { resourceVersion: '1', count: 0 }));
  await pass();
  expect(inbox()).toMatchObject({ status: 'failed', error: { reason: 'http:404' }, items: [] });
  expect(other.getSnapshot().status).toBe('live');
});

test('settings are those that the gateway keeps', async () => {
  const kept = { states: ['Failed'], digest: '5m0s', pausedUntil: '2030-01-01T00:00:00Z' };
  const asked = inboxOf(kc).setSettings({ states: ['Failed'], digest: '5m', pausedUntil: Date.UTC(2030, 0, 1) });
  await pass();
  expect(server.last.url).toBe('/notifications/settings');
  server.last.refuse(200, {}, JSON.stringify(kept));
  expect(await asked).toEqual({ ...kept, pausedUntil: Date.UTC(2030, 0, 1) });
  const refused = expect(inboxOf(kc).settings()).rejects.toThrow('HTTP 500');
  await pass();
  server.last.refuse(500);
  await refused;
});

import { expect, test, vi } from 'vitest';
import type { ScriptedFetch, ScriptedRequest } from '../../mock/fetch.ts';
import { frame } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { accessOf, meOf } from './access.ts';
import type { Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { pastOf } from './past.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const asked = (part: string): ScriptedRequest[] => server.requests.filter(({ url }) => url.includes(part));
const answer = (part: string, body: object): void => asked(part).at(-1)?.refuse(200, {}, JSON.stringify(body));
const nobody = (): void => undefined;

test('who shows the same asks once; who comes back late asks anew; the old answer stays meanwhile', async () => {
  const me = meOf(kc, ['pods']);
  expect(meOf(kc, ['pods'])).toBe(me);
  const leave = [me.subscribe(nobody), me.subscribe(nobody)];
  await pass();
  expect(asked('/auth/me?kinds=pods')).toHaveLength(1);
  expect(me.getSnapshot().status).toBe('loading');
  answer('/auth/me', { username: 'jane', groups: ['a'], anonymous: false, expiresAt: null, clusters: [{ name: 'c', default: true, watch: [{ group: '', resource: 'pods', all: true, namespaces: [] }] }] });
  await pass();
  expect(me.getSnapshot()).toMatchObject({ status: 'live', data: { username: 'jane', expiresAt: undefined, clusters: [{ watch: [{ resource: 'pods', all: true }] }] } });
  for (const end of leave) end();
  me.subscribe(nobody)();
  await pass(1_000);
  expect(asked('/auth/me')).toHaveLength(1);
  await pass(60_000);
  me.subscribe(nobody);
  await pass();
  expect(asked('/auth/me')).toHaveLength(2);
  expect(me.getSnapshot().data?.username).toBe('jane');
});

test('a refusal is told in the gateway’s words, and asked about again where waiting may help', async () => {
  const access = accessOf(kc, jobs, { namespace: 'a' });
  access.subscribe(nobody);
  await pass();
  asked('/selfsubjectaccessreviews').at(-1)?.refuse(503, {}, JSON.stringify({ message: 'not now' }));
  await pass();
  expect(access.getSnapshot()).toMatchObject({ status: 'loading', data: undefined, error: { message: 'not now', status: 503 } });
  await pass(30_000);
  answer('/selfsubjectaccessreviews', { status: { allowed: false, reason: 'no' } });
  await pass();
  expect(access.getSnapshot()).toMatchObject({ status: 'live', data: { allowed: false, reason: 'no' } });

  const other = accessOf(kc, jobs, { namespace: 'b' });
  other.subscribe(nobody);
  await pass();
  const before = asked('/selfsubjectaccessreviews').length;
  asked('/selfsubjectaccessreviews').at(-1)?.refuse(403);
  await pass(60_000);
  expect(asked('/selfsubjectaccessreviews')).toHaveLength(before);
  expect(other.getSnapshot()).toMatchObject({ status: 'denied', error: { status: 403 } });
});

test('the jobs of a history are read anew when a transition is told, and not once for each of them', async () => {
  const past = pastOf(kc, jobs, { owner: 'me', since: '24h' });
  expect(pastOf(kc, jobs, { owner: 'me', since: '24h' })).toBe(past);
  past.subscribe(nobody);
  await pass();
  const list = (): ScriptedRequest[] => server.requests.filter(({ url }) => url.startsWith('/history'));
  expect(list().map(({ url }) => url)).toEqual(['/history/apis/batch/v1/jobs?owner=me&since=24h']);
  const told = (seq: number): string => frame('w0.transition', `e.w0-${seq}`, { seq: String(seq), name: 'train', uid: 'u', to: 'Running', at: '2026-01-01T00:00:00Z' });
  const body = asked('/stream').at(-1)?.accept(told(1), frame('w0.synced', 'e.w0-1', { seq: '1', count: 1 }));
  list().at(-1)?.refuse(200, {}, JSON.stringify({ items: [{ name: 'train', uid: 'u', state: 'Pending' }], continue: '' }));
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', more: false, jobs: [{ name: 'train', state: 'Pending' }], transitions: [{ to: 'Running' }] });
  expect(past.getSnapshot()).toBe(past.getSnapshot());
  await pass(5_000); // what was told at first may be newer than what was read at first
  list().at(-1)?.refuse(200, {}, JSON.stringify({ items: [{ name: 'train', uid: 'u', state: 'Pending' }], continue: '' }));
  await pass(5_000);
  const read = list().length;
  for (const seq of [2, 3, 4]) {
    body?.push(told(seq));
    await pass(1);
  }
  await pass(5_000);
  expect(list().length - read).toBe(1); // it is still under way
  list().at(-1)?.refuse(200, {}, JSON.stringify({ items: [{ name: 'train', uid: 'u', state: 'Running' }], continue: 'x' }));
  await pass(5_000);
  expect(list().length - read).toBe(2); // since more was told meanwhile
  expect(past.getSnapshot()).toMatchObject({ more: true, jobs: [{ state: 'Running' }] });
  expect(past.getSnapshot().transitions).toHaveLength(4);
});

// A job that is retried is no failed job any more, and nothing leads to a failure then.
test('the jobs of some states are read anew when one leaves them, and not for what is about others', async () => {
  const past = pastOf(kc, jobs, { states: ['Failed'] });
  past.subscribe(nobody);
  await pass();
  const list = (): ScriptedRequest[] => server.requests.filter(({ url }) => url.startsWith('/history'));
  const told = (seq: number, from: string, to: string): string => frame('w0.transition', `e.w0-${seq}`, { seq: String(seq), name: 'train', uid: 'u', from, to, at: '2026-01-01T00:00:00Z' });
  const answerList = (items: readonly object[]): void => list().at(-1)?.refuse(200, {}, JSON.stringify({ items, continue: '' }));
  const stream = asked('/stream').at(-1);
  expect(decodeURIComponent(stream?.url ?? '')).not.toContain('state=');
  expect(list().map(({ url }) => url)).toEqual(['/history/apis/batch/v1/jobs?state=Failed']);
  const body = stream?.accept(told(1, 'Running', 'Failed'), frame('w0.synced', 'e.w0-1', { seq: '1', count: 1 }));
  answerList([{ name: 'train', uid: 'u', state: 'Failed' }]);
  await pass(5_000);
  answerList([{ name: 'train', uid: 'u', state: 'Failed' }]);
  await pass(5_000);
  const read = list().length;
  body?.push(told(2, 'Submitted', 'Pending') + told(3, 'Pending', 'Running'));
  await pass(5_000);
  expect(list()).toHaveLength(read);
  body?.push(told(4, 'Failed', 'Running'));
  await pass(5_000);
  expect(list()).toHaveLength(read + 1);
  answerList([]);
  await pass();
  expect(past.getSnapshot()).toMatchObject({ status: 'live', jobs: [], transitions: [{ seq: '1' }] });
  // So many may have been missed that what is told anew has none of these states.
  body?.push(frame('w0.reset', 'e', { reason: 'expired' }) + told(900, 'Submitted', 'Running') + frame('w0.synced', 'e.w0-900', { seq: '900', count: 1 }));
  await pass(5_000);
  expect(list()).toHaveLength(read + 2);
});

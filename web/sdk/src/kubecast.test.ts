import { describe, expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { answerTo } from './asked.ts';
import { WatchedCollection } from './collection.ts';
import { createKubecast, type Kubecast, type Watch } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { find, ready, snapshots } from './ready.ts';
import { defineResource, pathOf } from './resource.ts';

const jobs = defineResource<KubeObject & { readonly status?: { readonly active?: number } }>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });

let server: ScriptedFetch;
let kc: Kubecast;

eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const asked = (): string[] =>
  [...new URL(server.last.url, 'http://gateway').searchParams].filter(([, path]) => path.startsWith('/')).map(([name, path]) => `${name}=${path}`);
const added = (watch: string, uid: string): string => frame(`${watch}.added`, 'e', { metadata: { name: uid, uid } });
const synced = (watch: string, id: string): string => frame(`${watch}.synced`, id, { resourceVersion: '1', count: 1 });
const uids = (data: readonly KubeObject[]): string => data.map(({ metadata }) => metadata.uid).join();

test('a query is the path that it means', () => {
  expect(pathOf(jobs, { namespace: 'team-a', labels: 'a=b', where: 'status.active!=', fields: ['status', 'spec.x'], deltas: true, conflate: 250 })).toBe(
    '/apis/batch/v1/namespaces/team-a/jobs?labelSelector=a%3Db&fieldSelector=status.active%21%3D&fields=spec.x%2Cstatus&deltas=merge-patch&conflate=250ms',
  );
  expect(pathOf(pods, { cluster: 'east', namespace: '../x', name: 'p' })).toBe('/clusters/east/api/v1/namespaces/..%2Fx/pods/p');
});

test('nothing is asked for before somebody looks; watches that begin at once, and twice, are one stream', async () => {
  const one = kc.watch(jobs);
  expect(kc.watch(jobs)).toBe(one);
  await pass(1_000);
  expect(server.requests).toHaveLength(0);
  const listener = vi.fn();
  one.subscribe(listener);
  kc.watch(jobs).subscribe(() => undefined);
  kc.watch(pods).subscribe(() => undefined);
  await pass();
  expect(server.requests).toHaveLength(1);
  expect(asked()).toEqual(['w0=/apis/batch/v1/jobs', 'w1=/api/v1/pods']);
  server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'live', asOf: undefined, error: undefined });
  expect(uids(one.getSnapshot().data)).toBe('a');
  expect(one.getSnapshot()).toBe(one.getSnapshot());
  expect(kc.watch(pods).getSnapshot().status).toBe('loading');
});

test('an object is found by its uid as it is now, also after its namesake took its place, and not once it is gone', async () => {
  const watch = kc.watch(jobs);
  watch.subscribe(() => undefined);
  await pass();
  expect(find(watch, 'a')).toBeUndefined();
  const body = server.last.accept(added('w0', 'a'), added('w0', 'b'), synced('w0', 'e.w0-1'));
  await pass();
  expect(find(watch, 'b')).toBe(watch.getSnapshot().data[1]);
  const namesake = { metadata: { name: 'a', uid: 'c' } };
  body.push(frame('w0.deleted', 'e.w0-2', { metadata: { name: 'a', uid: 'a' } }) + frame('w0.added', 'e.w0-3', namesake));
  await pass();
  expect([find(watch, 'a'), find(watch, 'c')]).toEqual([undefined, namesake]);
});

test('a watch more, or one less, goes on from the position that is there, without a word of reconnecting', async () => {
  const statuses = new Set<string>();
  const one = kc.watch(jobs);
  one.subscribe(() => statuses.add(one.getSnapshot().status));
  await pass();
  server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  const leave = kc.watch(pods).subscribe(() => undefined);
  await pass();
  expect(server.last.headers.get('Last-Event-ID')).toBe('e.w0-1');
  server.last.accept(added('w1', 'p'), synced('w1', 'e.w0-1.w1-1'));
  await pass();
  expect(uids(kc.watch(pods).getSnapshot().data)).toBe('p');
  leave();
  await pass(4_000);
  expect(server.requests).toHaveLength(2); // somebody may come back
  await pass(1_000);
  expect(asked()).toEqual(['w0=/apis/batch/v1/jobs']);
  expect([...statuses]).toEqual(['loading', 'live']);
  // What was forgotten has missed something, so its old name must not be in the position of what comes back.
  kc.watch(pods).subscribe(() => undefined);
  await pass();
  expect(asked()).toEqual(['w0=/apis/batch/v1/jobs', 'w2=/api/v1/pods']);
});

test('the last one to leave ends the stream, and who kept a watch may come back to it', async () => {
  const one = kc.watch(jobs);
  one.subscribe(() => undefined)();
  await pass();
  kc.watch(jobs).subscribe(() => undefined)(); // as StrictMode does
  await pass(5_000);
  expect(server.requests.filter(({ aborted }) => !aborted)).toHaveLength(0);
  one.subscribe(() => undefined);
  await pass();
  server.last.accept(added('w1', 'a'), synced('w1', 'e.w1-1'));
  await pass();
  expect(uids(one.getSnapshot().data)).toBe('a');
});

test('a watch that is refused is told why, and the others go on', async () => {
  const [one, other] = [kc.watch(jobs), kc.watch(pods)];
  for (const watch of [one, other]) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403, {}, JSON.stringify({ message: 'pods is forbidden' }));
  await pass();
  const [ofJobs, ofPods] = server.requests.slice(1);
  expect(ofJobs?.url).toBe('/apis/batch/v1/jobs');
  ofJobs?.refuse(200);
  ofPods?.refuse(403);
  await pass();
  expect(asked()).toEqual(['w0=/apis/batch/v1/jobs']);
  server.last.accept(synced('w0', 'e.w0-1'));
  await pass();
  expect(one.getSnapshot().status).toBe('live');
  expect(other.getSnapshot()).toMatchObject({ status: 'denied', error: { reason: 'http:403', message: 'pods is forbidden' } }); // a HEAD has no words
  other.retry();
  await pass();
  expect(asked()).toHaveLength(2);
});

test('while it is sought which watch is refused, the others are lost and not refused, and nobody is told that all is over', async () => {
  const one = kc.watch(jobs);
  const seen: string[] = [];
  one.subscribe(() => seen.push(`${one.getSnapshot().reason ?? one.getSnapshot().status} ${uids(one.getSnapshot().data)} ${one.getSnapshot().error?.message}`));
  const phases = new Set<string | undefined>();
  kc.connection.subscribe(() => phases.add(kc.connection.getSnapshot()?.reason ?? kc.connection.getSnapshot()?.status));
  await pass();
  server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  const heard = Date.now();
  const other = kc.watch(pods);
  other.subscribe(() => undefined);
  await pass(100);
  const status = 404; // as of a history that is not kept
  server.last.refuse(status, {}, JSON.stringify({ message: 'w1: no history is kept of this kind' }));
  await pass(200);
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: heard, error: undefined });
  const [ofJobs, ofPods] = server.requests.slice(-2);
  ofJobs?.refuse(200);
  ofPods?.refuse(status);
  await pass();
  server.last.accept(frame('w0.bookmark', 'e.w0-1', { resourceVersion: '1' }));
  await pass();
  expect(seen.filter((line) => !/^(loading|live|catching-up|reconnecting) a? ?undefined$/.test(line))).toEqual([]);
  expect(phases).toEqual(new Set(['loading', 'live', 'reconnecting']));
  expect(one.getSnapshot().status).toBe('live');
  expect(other.getSnapshot()).toMatchObject({ status: 'failed', error: { reason: 'http:404', message: 'no history is kept of this kind' } });
});

test('each of several that are refused is told in its own words, and without the name that it has here', async () => {
  const watches = [kc.watch(jobs), kc.watch(pods), kc.watch(pods, { namespace: 'n' })] as const;
  for (const watch of watches) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(404, {}, JSON.stringify({ message: 'w1: nothing is here' }));
  await pass();
  const answer = (from: number, answers: readonly (readonly [number, string?])[]): void =>
    server.requests.slice(from).forEach((request, n) => request.refuse(answers[n]?.[0] ?? 500, {}, answers[n]?.[1]));
  answer(1, [[200], [404], [403]]);
  await pass();
  answer(4, [[404, JSON.stringify({ message: 'nothing is here' })], [403, JSON.stringify({ detail: 'not in n' })]]);
  await pass();
  expect(watches.map((watch) => watch.getSnapshot().error)).toEqual([
    undefined,
    { reason: 'http:404', message: 'nothing is here' },
    { reason: 'http:403', message: 'not in n' },
  ]);
  expect(asked()).toEqual(['w0=/apis/batch/v1/jobs']);
});

test('where a stream is refused and none of its watches is, nothing is asked again and again', async () => {
  for (const watch of [kc.watch(jobs), kc.watch(pods)]) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403);
  await pass();
  for (const request of server.requests.slice(1)) request.refuse(405); // by a proxy that takes no HEAD
  await pass();
  for (const request of server.requests.slice(3)) request.accept(added('', 'a'));
  await pass(60_000);
  expect(server.requests).toHaveLength(5);
});

test('who closes while it is sought who is refused is told so', async () => {
  const watch = kc.watch(jobs);
  watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403);
  await pass();
  kc.close();
  expect(watch.getSnapshot().status).toBe('failed');
  for (const request of server.requests.slice(1)) request.refuse(403);
  await pass();
  expect(watch.getSnapshot().status).toBe('failed');
  expect(kc.connection.getSnapshot()?.status).toBe('failed');
});

test('one that is allowed by the time that its words are asked for leaves no stream behind', async () => {
  const watches = [kc.watch(jobs), kc.watch(pods)];
  for (const watch of watches) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403);
  await pass();
  for (const request of server.requests.slice(1)) request.refuse(403);
  await pass();
  const [ofJobs, ofPods] = server.requests.slice(3);
  const body = ofJobs?.accept(added('', 'a'));
  ofPods?.refuse(403, {}, JSON.stringify({ message: 'pods is forbidden' }));
  await pass();
  expect(body?.cancelled).toBe(true);
  expect(watches[1]?.getSnapshot().error?.message).toBe('pods is forbidden');
});

/** A client that waits half as long as it may. */
function patient(): Kubecast {
  kc.close();
  return (kc = createKubecast({ token: () => 't', fetch: server.fetch, random: () => 0.5 }));
}

test.each([503, 429, 0])('where nobody can say who is refused (%i), none is denied, and the stream is asked again, later, or when somebody wakes it', async (status) => {
  patient();
  const [one, other] = [kc.watch(jobs), kc.watch(pods)];
  for (const watch of [one, other]) watch.subscribe(() => undefined);
  await pass();
  for (const woken of [true, false]) {
    server.last.refuse(403, {}, JSON.stringify({ message: 'w1: pods is forbidden' }));
    await pass();
    for (const request of server.requests.slice(-2)) {
      if (status) request.refuse(status);
      else request.fail();
    }
    await pass();
    const error = { reason: 'http:403', message: 'pods is forbidden' };
    for (const watch of [one, other]) expect(watch.getSnapshot()).toMatchObject({ status: 'loading', error });
    expect(kc.connection.getSnapshot()).toMatchObject({ status: 'loading', error });
    const before = server.requests.length;
    if (woken) kc.wake();
    else await pass(7_999);
    if (!woken) expect(server.requests).toHaveLength(before);
    await pass(1);
    expect(server.requests).toHaveLength(before + 1);
    expect(asked()).toHaveLength(2);
  }
  server.last.accept(synced('w0', 'e.w0-1'), synced('w1', 'e.w0-1.w1-1'));
  await pass();
  for (const watch of [one, other]) expect(watch.getSnapshot()).toMatchObject({ status: 'live', error: undefined });
});

test('a new watch that is refused for now says why while that is found out again, and those that were there say it of their old rows', async () => {
  patient();
  const [one, other] = [kc.watch(jobs), kc.watch(pods)];
  one.subscribe(() => undefined);
  await pass();
  server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  other.subscribe(() => undefined);
  await pass();
  server.last.refuse(403, {}, JSON.stringify({ message: 'pods is forbidden' }));
  await pass();
  for (const request of server.requests.slice(-2)) request.refuse(503);
  await pass();
  const error = { reason: 'http:403', message: 'pods is forbidden' };
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', error, data: [{}] });
  expect(other.getSnapshot()).toMatchObject({ status: 'loading', error });
});

test('who closes while it is waited to find out again leaves no timer behind', async () => {
  patient();
  for (const watch of [kc.watch(jobs), kc.watch(pods)]) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403);
  await pass();
  for (const request of server.requests.slice(-2)) request.refuse(503);
  await pass();
  expect(vi.getTimerCount()).toBeGreaterThan(0);
  kc.close();
  await pass();
  expect(vi.getTimerCount()).toBe(0);
  const before = server.requests.length;
  await pass(60_000);
  expect(server.requests).toHaveLength(before);
});

describe('who closes ends', () => {
  const follow = async (watch: Watch<KubeObject>): Promise<string> => {
    const seen: string[] = [];
    try {
      for await (const { status, error } of snapshots(watch)) seen.push(error ? `${status} ${error.reason}` : status);
      return `${seen.join()} and ended`;
    } catch (error) {
      return `${seen.join()} and threw ${String(error)}`;
    }
  };
  /** A promise that does not settle is no reason to wait. */
  const soon = (what: Promise<string>): Promise<string> => Promise.race([what, pass(1_000).then(() => 'it does not end')]);

  test('what is denied, which shows as little as before, and asks for nothing more', async () => {
    const watch = kc.watch(jobs);
    const following = follow(watch);
    await pass();
    const body = server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
    await pass();
    body.break();
    await pass(1_000);
    server.last.refuse(403);
    await pass();
    server.last.refuse(403);
    await pass();
    watch.subscribe(() => undefined);
    const before = server.requests.length;
    kc.close();
    expect(watch.getSnapshot()).toMatchObject({ status: 'failed', data: [], error: { reason: 'closed' } });
    expect(await soon(following)).toMatch(/,denied http:403,failed closed and ended$/);
    kc.wake();
    watch.retry();
    await pass(1_000);
    expect(watch.getSnapshot()).toMatchObject({ status: 'failed', data: [] });
    expect(server.requests).toHaveLength(before);
  });

  test('what is lost while it is sought who is refused, whatever the answer is', async () => {
    const both = [follow(kc.watch(jobs)), follow(kc.watch(pods))];
    await pass();
    server.last.refuse(403);
    await pass();
    kc.close();
    for (const one of both) expect(await soon(one)).toBe('loading,failed closed and ended');
    for (const question of server.requests.slice(-2)) question.refuse(503);
    await pass();
    expect(kc.connection.getSnapshot()).toMatchObject({ status: 'failed', error: { reason: 'closed' } });
    expect(vi.getTimerCount()).toBe(0);
  });

  test('what was never asked for, and what is watched only then', async () => {
    const early = kc.watch(jobs);
    kc.close();
    await expect(ready(early)).rejects.toMatchObject({ cause: { reason: 'closed' } });
    await expect(ready(kc.watch(pods))).rejects.toMatchObject({ cause: { reason: 'closed' } });
    await pass(10_000);
    expect(kc.watch(pods).getSnapshot().status).toBe('failed');
    expect(server.requests).toHaveLength(0);
  });
});

test('what was denied is not shown again before it is known to be allowed, however the gateway is meanwhile', async () => {
  const watch = kc.watch(jobs);
  const seen: string[] = [];
  watch.subscribe(() => seen.push(`${watch.getSnapshot().status} ${watch.getSnapshot().data.length}`));
  await pass();
  const body = server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  body.break();
  await pass(1_000);
  server.last.refuse(403);
  await pass();
  server.last.refuse(403);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'denied', data: [] });
  seen.length = 0;
  watch.retry();
  await pass();
  const from = server.requests.length;
  server.last.refuse(503);
  await pass(100);
  expect(server.requests.length).toBeGreaterThan(from);
  expect(watch.getSnapshot()).toMatchObject({ status: 'loading', data: [], error: { reason: 'http:503' } });
  expect(seen.filter((text) => text.endsWith(' 1'))).toEqual([]);
  server.last.accept(frame('w0.bookmark', 'e.w0-2', { resourceVersion: '2' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', data: [{ metadata: { name: 'a' } }] });
});

test.each([401, 403])('after %i nothing of before is shown, not to who may see less than before, and not by close()', async (status) => {
  const watch = kc.watch(jobs);
  const shown: number[] = [];
  watch.subscribe(() => shown.push(watch.getSnapshot().data.length));
  await pass();
  const body = server.last.accept(added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  body.break();
  await pass(1_000);
  server.last.refuse(status);
  await pass();
  if (status === 403) server.last.refuse(403);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'denied', data: [], error: { reason: `http:${status}` } });
  shown.length = 0;
  watch.retry();
  await pass();
  server.last.refuse(503);
  await pass(30_000);
  const again = server.last.accept(frame('w0.reset', 'e', { reason: 'epoch' }));
  await pass();
  expect(watch.getSnapshot().data).toEqual([]);
  again.push(added('w0', 'b') + synced('w0', 'e.w0-2'));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', data: [{ metadata: { name: 'b' } }] });
  expect(Math.max(...shown.slice(0, -1), 0)).toBe(0);
  again.break();
  await pass(1_000);
  server.last.refuse(status);
  await pass();
  if (status === 403) server.last.refuse(403);
  await pass();
  kc.close();
  kc.close();
  expect(watch.getSnapshot()).toMatchObject({ status: 'failed', data: [], error: { reason: 'closed' } });
});

test('all that is watched is refused: so it is told of the connection, too', async () => {
  const one = kc.watch(jobs);
  one.subscribe(() => undefined);
  await pass();
  server.last.refuse(403, {}, JSON.stringify({ message: 'w0: jobs.batch is forbidden' }));
  await pass();
  server.last.refuse(403);
  await pass();
  const error = { reason: 'http:403', message: 'jobs.batch is forbidden' };
  expect(one.getSnapshot()).toMatchObject({ status: 'denied', error });
  expect(kc.connection.getSnapshot()).toMatchObject({ status: 'denied', error });
});

test('what was refused is asked for when one looks again, and is back once it is allowed; the stream is left alone until then', async () => {
  const [one, other] = [kc.watch(jobs), kc.watch(pods)];
  for (const watch of [one, other]) watch.subscribe(() => undefined);
  await pass();
  server.last.refuse(403);
  await pass();
  for (const [n, request] of server.requests.slice(1).entries()) request.refuse(n === 0 ? 200 : 403);
  await pass();
  const body = server.last.accept(synced('w0', 'e.w0-1'));
  await pass();
  for (const status of [403, 200]) {
    const before = server.requests.length;
    kc.wake();
    await pass();
    const probes = server.requests.slice(before).filter(({ url }) => url === '/api/v1/pods');
    expect(probes).toHaveLength(1);
    expect(other.getSnapshot().status).toBe('denied');
    body.push(': here\n\n'); // the stream itself was asked whether it is alive
    probes[0]?.refuse(status);
    await pass();
  }
  expect(asked()).toHaveLength(2);
});

test('old rows are never live: lost, they are as of when they were; told anew, they are catching up', async () => {
  const one = kc.watch(jobs);
  one.subscribe(() => undefined);
  await pass();
  const body = server.last.accept('retry: 100\n\n', added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  const heard = Date.now();
  await pass(5_000);
  body.break();
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: heard });
  await pass(100);
  const next = server.last.accept(frame('w0.reset', 'e', { reason: 'expired' }), added('w0', 'b'));
  await pass();
  expect(one.getSnapshot().reason).toBe('catching-up');
  next.push(synced('w0', 'e.w0-9'));
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'live', asOf: undefined });
  expect(uids(one.getSnapshot().data)).toBe('b');
});

test('who goes on from a position is as of it until all that was missed is told, also if that is cut off', async () => {
  const one = kc.watch(jobs);
  const seen: string[] = [];
  one.subscribe(() => seen.push(`${one.getSnapshot().reason ?? one.getSnapshot().status} ${uids(one.getSnapshot().data)}`));
  await pass();
  const body = server.last.accept('retry: 100\n\n', added('w0', 'a'), synced('w0', 'e.w0-1'));
  await pass();
  const heard = Date.now();
  body.break();
  await pass(60_000);
  const second = server.last.accept(frame('w0.added', 'e.w0-2', { metadata: { name: 'b', uid: 'b' } }));
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up', asOf: heard });
  second.break();
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: heard });
  await pass(1_000);
  const third = server.last.accept(frame('w0.added', 'e.w0-3', { metadata: { name: 'c', uid: 'c' } }));
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up', asOf: heard });
  third.push(frame('w0.bookmark', 'e.w0-3', { resourceVersion: '3' }));
  await pass();
  expect(one.getSnapshot()).toMatchObject({ status: 'live', asOf: undefined });
  expect(uids(one.getSnapshot().data)).toBe('a,b,c');
  // A watch more takes the stream over while it is live: nothing was missed.
  seen.length = 0;
  kc.watch(pods).subscribe(() => undefined);
  await pass();
  server.last.accept(frame('w0.bookmark', 'e.w0-3', { resourceVersion: '3' }), synced('w1', 'e.w0-3.w1-3'));
  await pass();
  expect(seen.filter((one) => !one.startsWith('live'))).toEqual([]);
});

test('an event is for its own watch: the others of a page are not visited, however many there are', async () => {
  const visits: string[] = [];
  const follow = (name: string): Watch<unknown> =>
    kc.follow({
      path: `/api/v1/namespaces/${name}/pods`,
      sink: (changed) => {
        const sink = new WatchedCollection(changed);
        for (const what of ['left', 'apply', 'commit'] as const) {
          const really = sink[what].bind(sink) as (...args: unknown[]) => never;
          sink[what] = (...args: unknown[]) => {
            visits.push(`${name} ${what}`);
            return really(...args);
          };
        }
        return sink;
      },
    });
  for (const name of ['a', 'b', 'c']) follow(name).subscribe(() => undefined);
  await pass();
  const body = server.last.accept(synced('w0', 'e.w0-1'), synced('w1', 'e.w0-1.w1-1'), synced('w2', 'e.w0-1.w1-1.w2-1'));
  follow('d'); // which the stream does not carry
  await pass();
  visits.length = 0;
  for (let n = 2; n < 100; n++) body.push(added('w1', `o${n}`));
  await pass();
  expect(new Set(visits)).toEqual(new Set(['b apply', 'b commit']));
});

test('without an address, outside of a browser, it is said at once, and not tried for ever', async () => {
  const words = /\/.*: createKubecast needs a gateway$/;
  for (const gateway of [undefined, '', '/tools/kubecast']) {
    const nowhere = createKubecast({ gateway });
    expect(nowhere.watch(jobs).getSnapshot().status).toBe('loading'); // a server renders that
    await expect(ready(nowhere.watch(jobs))).rejects.toThrow(words);
    expect(nowhere.watch(jobs).getSnapshot()).toMatchObject({ status: 'failed', error: { reason: 'no-address' } });
    await expect(answerTo(nowhere, '/auth/me')).rejects.toThrow(/URL/);
    nowhere.close();
  }
});

test('what stands in for fetch may know where a relative address leads, and its failures pass', async () => {
  let requests = 0;
  vi.stubGlobal('fetch', () => {
    requests++;
    return Promise.reject(new TypeError('Failed to fetch'));
  });
  const kc = createKubecast();
  const watch = kc.watch(jobs);
  watch.subscribe(() => undefined);
  await pass(120_000);
  expect(watch.getSnapshot()).toMatchObject({ status: 'loading', error: { reason: 'network' } });
  expect(requests).toBeGreaterThan(2);
  kc.close();
  vi.unstubAllGlobals();
});

test('a fetch that gives no body to read is said, and not tried for ever', async () => {
  const headers = new Headers({ 'Content-Type': 'text/event-stream' });
  const fetch = vi.fn(() => Promise.resolve({ status: 200, ok: true, headers, text: () => Promise.resolve('') } as Response));
  const bodiless = createKubecast({ fetch });
  const watch = bodiless.watch(jobs);
  watch.subscribe(() => undefined);
  await expect(Promise.all([ready(watch), pass()])).rejects.toThrow('fetch gives no body to read');
  await pass(120_000);
  expect(watch.getSnapshot()).toMatchObject({ status: 'failed', error: { reason: 'no-body' } });
  expect(fetch).toHaveBeenCalledTimes(1);
  bodiless.close();
});

test("a page in place of an answer may go away", async () => {
  const page = (): Promise<Response> => Promise.resolve(new Response('<!doctype html><title>Portal</title>', { headers: { 'Content-Type': 'text/html' } }));
  const misled = createKubecast({ fetch: page });
  const watch = misled.watch(jobs);
  watch.subscribe(() => undefined);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'loading', error: { reason: 'not-a-stream', message: 'the answer is text/html' } });
  misled.close();
});

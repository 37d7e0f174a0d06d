import { expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../mock/fetch.ts';
import { eachPage } from '../../mock/page.ts';
import { transitions } from './history.ts';
import { runs } from './runs.ts';
import type { Kubecast } from './kubecast.ts';
import { logs } from './logs.ts';
import type { KubeObject } from './object.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let server: ScriptedFetch;
let kc: Kubecast;
let body: ScriptedBody;

eachPage((page) => ({ server, kc } = page));

const pass = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const send = (...frames: string[]): void => body.push(frames.join(''));
const of = { namespace: 'n', pod: 'p', container: 'c' };
const line = (id: string, text: string): string => frame('w0.line', id, { ...of, time: '2030-01-01T00:00:00Z', text });
const to = (id: string, seq: string, state: string): string => frame('w0.transition', id, { seq, name: 'j', to: state, from: null, at: '2030-01-01T00:00:00Z' });

test('a source is the path that it means', () => {
  expect(logs(jobs, { namespace: 'n', name: 'j', containers: ['a', 'b'], tailLines: 0, search: 'x y' }).path).toBe(
    '/logs/apis/batch/v1/namespaces/n/jobs/j?search=x+y&container=a%2Cb&tailLines=0',
  );
  expect(logs(jobs, { namespace: 'n', name: 'j' }).path).toBe('/logs/apis/batch/v1/namespaces/n/jobs/j');
  expect(transitions(jobs, { cluster: 'east', states: ['Failed'], owner: 'me', limit: 0 }).path).toBe(
    '/history/clusters/east/apis/batch/v1/jobs?view=transitions&state=Failed&owner=me&limit=0',
  );
  expect(runs(jobs, { namespace: 'n', job: 'uid', owner: 'me', limit: 0 }).path).toBe('/history/apis/batch/v1/namespaces/n/jobs?view=runs&owner=me&uid=uid&limit=0');
});

test('lines are shown as they come, once, over a cut within the backlog; where some are missing stands a gap', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  const shown = (): string[] => log.getSnapshot().data.map((entry) => (entry.type === 'line' ? entry.text : entry.type));
  log.subscribe(() => undefined);
  await pass();
  const started = frame('w0.started', 'e.w0-p0', { ...of, restart: 0 });
  body = server.last.accept(started, line('e.w0-p1', 'one'));
  await pass();
  expect(shown()).toEqual(['started', 'one']);
  expect(log.getSnapshot().status).toBe('loading');
  body.break();
  await pass(2_000);
  expect(server.last.headers.get('last-event-id')).toBe('e.w0-p1');
  const gap = frame('w0.reset', 'e.w0-p3', { reason: 'expired', ...of });
  body = server.last.accept(line('e.w0-p2', 'two'), gap, line('e.w0-p4', 'four'), frame('w0.synced', 'e.w0-p4', { lines: 3 }), frame('w0.bookmark', 'e.w0-p4', {}));
  await pass();
  expect(shown()).toEqual(['started', 'one', 'two', 'reset', 'four']);
  expect(log.getSnapshot().status).toBe('live');
  const numbers = log.getSnapshot().data.map(({ number }) => number);
  expect(new Set(numbers).size).toBe(5);
});

test('what is told anew after a reset takes the place of what was there only when it is complete', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  const shown = (): string => log.getSnapshot().data.map((entry) => (entry.type === 'line' ? entry.text : entry.type)).join();
  log.subscribe(() => undefined);
  await pass();
  body = server.last.accept(line('e.w0-p1', 'old'), frame('w0.synced', 'e.w0-p1', { lines: 1 }));
  await pass();
  send(frame('w0.reset', 'e', { reason: 'epoch' }), line('e.w0-p1', 'new'));
  await pass();
  expect(shown()).toBe('old');
  expect(log.getSnapshot().reason).toBe('catching-up');
  send(frame('w0.synced', 'e.w0-p1', { lines: 1 }), line('e.w0-p2', 'newer'));
  await pass();
  expect(shown()).toBe('new,newer');
});

test('transitions whose first answer was cut are told anew, and none is there twice', async () => {
  const past = kc.follow(transitions(jobs, { namespace: 'n', name: 'j' }));
  const shown = (): string => past.getSnapshot().data.map(({ seq, to: state }) => `${seq} ${state}`).join();
  past.subscribe(() => undefined);
  await pass();
  body = server.last.accept(to('e', '1', 'Pending'));
  await pass();
  body.break();
  await pass(2_000);
  body = server.last.accept(to('e', '1', 'Pending'), to('e', '2', 'Running'), frame('w0.synced', 'e.w0-2', { seq: '2', count: 2 }));
  await pass();
  expect(shown()).toBe('1 Pending,2 Running');
  expect(past.getSnapshot().data[0]).toMatchObject({ from: undefined, at: Date.UTC(2030, 0, 1), late: false });
  body.break();
  await pass(2_000);
  body = server.last.accept(frame('w0.bookmark', 'e.w0-2', { seq: '2' }), to('e.w0-3', '3', 'Succeeded'));
  await pass();
  expect(shown()).toBe('1 Pending,2 Running,3 Succeeded');
});

test('what becomes of pods is told change by change', async () => {
  const pods = kc.follow(runs(jobs, { namespace: 'n', job: 'u', limit: 10 }));
  pods.subscribe(() => undefined);
  await pass();
  const job = { resource: 'jobs.batch', name: 'j', uid: 'u' };
  const run = (id: string, seq: string, more: object): string => frame('w0.run', id, { seq, uid: 'p', name: 'j-0', job, createdAt: '2030-01-01T00:00:00Z', endedAt: null, exitCode: null, ...more });
  body = server.last.accept(run('e', 'a', { node: '' }), frame('w0.synced', 'e.w0-px-', { seq: 'x', count: 1 }));
  await pass();
  send(run('e.w0-py-', 'b', { node: 'n1', endedAt: '2030-01-01T00:00:01Z', exitCode: 137, reason: 'OOMKilled' }), frame('w0.transition', 'e.w0-py-', { seq: 'c' }));
  await pass();
  const [made, ended] = pods.getSnapshot().data;
  expect(pods.getSnapshot().data).toHaveLength(2);
  expect(made).toMatchObject({ seq: 'a', uid: 'p', job, createdAt: Date.UTC(2030, 0, 1), endedAt: undefined, exitCode: undefined, signal: undefined, restarts: 0, requests: {} });
  expect(ended).toMatchObject({ seq: 'b', node: 'n1', endedAt: Date.UTC(2030, 0, 1, 0, 0, 1), exitCode: 137, reason: 'OOMKilled' });
});

test('of a log that never ends the newest are kept', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j', keep: 100 }));
  log.subscribe(() => undefined);
  await pass();
  body = server.last.accept(frame('w0.synced', 'e.w0-p0', { lines: 0 }));
  for (let n = 0; n < 1_000; n++) send(line(`e.w0-p${n}`, String(n)));
  await pass();
  const { data } = log.getSnapshot();
  expect(data).toHaveLength(100);
  expect(data.at(-1)).toMatchObject({ text: '999' });
});

test('a line that cannot be read is not passed over: all is asked for anew', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  log.subscribe(() => undefined);
  await pass();
  body = server.last.accept(line('e.w0-p1', 'one'), 'event: w0.line\nid: e.w0-p2\ndata: [\n\n');
  await pass(2_000);
  expect(server.last.headers.get('last-event-id')).toBeNull();
});

test('what was told of a backlog is not told twice where the source was refused meanwhile, and is permitted again', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  const other = kc.watch(jobs, { namespace: 'n', name: 'j' });
  const shown = (): string => log.getSnapshot().data.map((entry) => (entry.type === 'line' ? entry.text : entry.type)).join();
  log.subscribe(() => undefined);
  other.subscribe(() => undefined);
  await pass();
  body = server.last.accept(line('e.w0-p1', 'one'));
  await pass();
  body.break();
  await pass(2_000);
  server.last.refuse(403);
  await pass();
  const [head, fine] = server.requests.slice(-2);
  head?.refuse(403);
  fine?.accept();
  await pass();
  expect(log.getSnapshot().status).toBe('denied');
  body = server.last.accept(frame('w1.synced', 'e.w1-7', { resourceVersion: '7', count: 0 }));
  await pass();
  log.retry();
  await pass();
  expect(server.last.headers.get('last-event-id')).toBe('e.w1-7');
  body = server.last.accept(line('e.w0-p1.w1-7', 'one'), frame('w0.synced', 'e.w0-p1.w1-7', { lines: 1 }));
  await pass();
  expect(shown()).toBe('one');
});

test('what is told anew without a word, since the stream was cut between the resets of two sources, is there once', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  const past = kc.follow(transitions(jobs, { namespace: 'n', name: 'j' }));
  const shown = (): string => log.getSnapshot().data.map((entry) => (entry.type === 'line' ? entry.text : entry.type)).join();
  const states = (): string => past.getSnapshot().data.map(({ to: state }) => state).join();
  log.subscribe(() => undefined);
  past.subscribe(() => undefined);
  await pass();
  const told = (id: string): string => frame('w1.transition', id, { seq: '1', name: 'j', to: 'Running', at: '2030-01-01T00:00:00Z' });
  body = server.last.accept(line('e.w0-p1', 'one'), frame('w0.synced', 'e.w0-p1', {}), told('e.w0-p1'), frame('w1.synced', 'e.w0-p1.w1-1', { seq: '1' }));
  await pass();
  body.break();
  await pass(2_000);
  body = server.last.accept(frame('w0.reset', 'f', { reason: 'epoch' })); // and w1.reset is lost
  await pass();
  body.break();
  await pass(2_000);
  expect(server.last.headers.get('last-event-id')).toBe('f');
  body = server.last.accept(line('f.w0-p1', 'one'), frame('w0.synced', 'f.w0-p1', {}), told('f.w0-p1'), frame('w1.synced', 'f.w0-p1.w1-1', { seq: '1' }));
  await pass();
  expect(shown()).toBe('one');
  expect(states()).toBe('Running');
});

test('the page goes on while one of its sources is away, and has that one back when it can be told again', async () => {
  const other = kc.watch(jobs, { namespace: 'n', name: 'j' });
  const past = kc.follow(transitions(jobs, { namespace: 'n', name: 'j' }));
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  for (const { subscribe } of [other, past, log]) subscribe(() => undefined);
  let away = true;
  let answered: unknown;
  // As the gateway does while the history's database is away: each stream that has it ends.
  const live = async (seconds: number): Promise<void> => {
    for (let n = 0; n < 10 * seconds; n++) {
      await pass(100);
      if (server.requests.length === 0 || server.last === answered) continue;
      answered = server.last;
      const names = [...new URL(server.last.url, 'http://x').searchParams.keys()].filter((name) => name.startsWith('w'));
      if (away && names.includes('w1')) server.last.accept(frame('goodbye', 'e', { reason: 'unavailable' })).end();
      else server.last.accept(...names.map((name) => frame(`${name}.synced`, `e.${names.map((one) => `${one}-1`).join('.')}`, {})));
    }
  };
  await live(60);
  expect(other.getSnapshot().status).toBe('live');
  await live(60); // the log is not away, and not left out for good
  expect([other.getSnapshot().status, log.getSnapshot().status, past.getSnapshot().status]).toEqual(['live', 'live', 'loading']); // it was never there
  expect(past.getSnapshot().error?.reason).toBe('left-out');
  away = false;
  await live(60);
  expect([other.getSnapshot().status, log.getSnapshot().status, past.getSnapshot().status]).toEqual(['live', 'live', 'live']);
});

test('what the connection shows is told also where it goes on without what was refused, or with nothing', async () => {
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  log.subscribe(() => undefined);
  const told: (string | undefined)[] = [];
  kc.connection.subscribe(() => told.push(kc.connection.getSnapshot()?.status));
  await pass();
  server.last.refuse(403);
  await pass();
  server.last.refuse(403); // the question which it was
  await pass();
  expect(log.getSnapshot().status).toBe('denied');
  expect(told.at(-1)).toBe(kc.connection.getSnapshot()?.status);
});

test('who has left before the stream was refused for them does not take the others along', async () => {
  const other = kc.watch(jobs, { namespace: 'n', name: 'j' });
  const log = kc.follow(logs(jobs, { namespace: 'n', name: 'j' }));
  other.subscribe(() => undefined);
  const leave = log.subscribe(() => undefined);
  await pass();
  leave();
  server.last.refuse(404);
  await pass();
  const [first, second] = server.requests.slice(-2);
  first?.accept();
  second?.refuse(404);
  await pass();
  server.last.accept(frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 0 }));
  await pass();
  expect(other.getSnapshot().status).toBe('live');
});

test('what was left out is not signed in either when nobody is', async () => {
  const other = kc.watch(jobs);
  const past = kc.follow(transitions(jobs, {}));
  for (const watch of [other, past]) watch.subscribe(() => undefined);
  await pass();
  server.last.accept(frame('w1.synced', 'e.w1-1', { seq: '1', count: 0 }), frame('goodbye', 'e', { reason: 'unavailable' })).end();
  await pass(100);
  const body = server.last.accept(frame('w0.synced', 'e.w0-1', { resourceVersion: '1' }));
  await pass(100);
  expect(past.getSnapshot().error?.reason).toBe('left-out');
  body.break();
  await pass(1_000);
  server.last.refuse(401);
  await pass();
  expect([other, past].map((watch) => [watch.getSnapshot().status, watch.getSnapshot().error?.reason])).toEqual([['denied', 'http:401'], ['denied', 'http:401']]);
  kc.close();
  expect(past.getSnapshot().status).toBe('failed');
});

test('what was left out is taken back when nothing else is followed any more: there is nobody to be spared', async () => {
  const other = kc.watch(jobs);
  const past = kc.follow(transitions(jobs, {}));
  const leave = other.subscribe(() => undefined);
  past.subscribe(() => undefined);
  await pass();
  server.last.accept(frame('goodbye', 'e', { reason: 'unavailable' })).end();
  await pass(100);
  server.last.accept(frame('w0.synced', 'e.w0-1', { resourceVersion: '1' }));
  await pass(100);
  expect([other.getSnapshot().status, past.getSnapshot().error?.reason]).toEqual(['live', 'left-out']);
  expect(past.getSnapshot()).toMatchObject({ status: 'loading', reason: undefined });
  leave();
  await pass(6_000); // after it has lingered
  server.last.accept(frame('w1.synced', 'e.w1-1', { seq: '1' }));
  await pass(100);
  expect(past.getSnapshot().status).toBe('live');
});

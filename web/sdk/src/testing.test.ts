// A page's tests against a gateway in memory must see what they would see over a network: objects, changes, cuts, resets, refusals.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MockGateway, MockInbox, MockPast, MockWorld } from '../../mock/index.ts';
import {
  accessOf, createKubecast, defineResource, inboxOf, logs, meOf, pastEnds, pastJobs, pastLog, pastRuns, pastUsage, transitions, type Kubecast, type KubeObject, type LogEntry, type TokenReason,
} from './index.ts';

interface Job extends KubeObject {
  readonly status?: { readonly active?: number };
}
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });

let gateway: MockGateway;
let kc: Kubecast;
beforeEach(() => {
  gateway = new MockGateway();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0, linger: 0 });
});
afterEach(() => kc.close());

/** Machines are slow at times. */
const soon = <T>(what: () => T) => expect.poll(what, { timeout: 30_000 });

const put = (name: string, namespace = 'team-a') => gateway.cluster.put('jobs', { metadata: { name, namespace } });

function watched(namespace?: string) {
  const watch = kc.watch(jobs, { namespace });
  const leave = watch.subscribe(() => undefined);
  return { leave, watch, shows: (...names: string[]) => soon(() => [watch.getSnapshot().reason ?? watch.getSnapshot().status, ...watch.getSnapshot().data.map(({ metadata }) => metadata.name)]).toEqual(names) };
}

test('objects come, change and go, also over cuts within a frame, and what was forgotten is told anew', async () => {
  put('one');
  put('elsewhere', 'team-b');
  const { shows, leave } = watched('team-a');
  await shows('live', 'one');
  const { metadata } = put('two');
  await shows('live', 'one', 'two');
  gateway.sabotage = (text) => (text.includes('"three"') ? text.length - 4 : undefined);
  gateway.cutAll();
  await soon(() => gateway.streams.size).toBe(1);
  put('three');
  await soon(() => gateway.streams.size).toBe(0);
  gateway.sabotage = undefined;
  await shows('live', 'one', 'two', 'three');
  gateway.away = true;
  gateway.cutAll();
  await shows('reconnecting', 'one', 'two', 'three');
  gateway.cluster.remove('jobs', metadata.uid);
  gateway.cluster.compact();
  put('four');
  gateway.away = false;
  kc.wake();
  await shows('live', 'one', 'three', 'four');
  leave();
  await soon(() => gateway.streams.size).toBe(0); // who leaves is noticed
});

test('what is refused is denied, and the rest goes on', async () => {
  gateway.users.set('let-me-in', { namespaces: ['team-a'] });
  put('one');
  const [mine, theirs] = [watched('team-a'), watched('team-b')];
  await theirs.shows('denied');
  await mine.shows('live', 'one');
});

test('what a page writes arrives', async () => {
  gateway.inbox = new MockInbox();
  const { id } = gateway.inbox.tell('train', 'Failed');
  const inbox = inboxOf(kc);
  inbox.subscribe(() => undefined);
  await soon(() => inbox.getSnapshot().unread).toBe(1);
  await inbox.markRead({ ids: [id] });
  expect(gateway.inbox.items.get(id)?.readAt).not.toBeNull();
});

describe('what goes wrong is seen by the SDK as it is', { timeout: 60_000 }, () => {
  /** What is not live has its rows all the same. */
  const isNotLive = ({ watch }: ReturnType<typeof watched>, ...names: string[]) =>
    soon(() => [watch.getSnapshot().status === 'live', ...watch.getSnapshot().data.map(({ metadata }) => metadata.name)]).toEqual([false, ...names]);
  let rows: ReturnType<typeof watched>;
  const begin = async (): Promise<void> => {
    put('one');
    rows = watched();
    await rows.shows('live', 'one');
  };

  test.each([false, true])('streams that are cut go on behind what they told (within a frame: %s)', async (within) => {
    await begin();
    const { length } = gateway.requests;
    gateway.fault.cut({ within });
    put('two');
    await rows.shows('live', 'one', 'two');
    expect(gateway.requests.length).toBeGreaterThan(length);
    expect(gateway.requests.at(-1)?.lastEventId).not.toBe('');
  });

  test('a bell has no notifications of a namespace that was revoked, nor counts them, and has them again once it is permitted', async () => {
  gateway.inbox = new MockInbox();
  gateway.inbox.tell('one', 'Failed');
  gateway.inbox.tell('two', 'Failed', { namespace: 'team-b' });
  const digest = ['team-a', 'team-b'].map((namespace) => ({ resource: 'jobs.batch', namespace, name: namespace }));
  gateway.inbox.tell('three', 'Digest', { title: 'two jobs ended', transition: null, digest });
  const inbox = inboxOf(kc);
  inbox.subscribe(() => undefined);
  const shows = (...told: string[]) =>
    soon(() => {
      const { status, unread, data } = inbox.getSnapshot();
      return [status, unread, ...data.map(({ title, digest: of }) => `${title} ${of.map(({ name }) => name).join()}`.trim())].join('; ');
    }).toBe(told.join('; '));
  await shows('live', '3', 'two jobs ended team-a,team-b', 'two failed', 'one failed');
  gateway.permit('let-me-in', { namespaces: ['team-a'] });
  await shows('live', '2', 'two jobs ended team-a', 'one failed');
  gateway.inbox.tell('four', 'Failed', { namespace: 'team-b' });
  gateway.inbox.tell('five', 'Failed');
  await shows('live', '3', 'five failed', 'two jobs ended team-a', 'one failed');
  gateway.cutAll();
  gateway.permit('let-me-in', { namespaces: [] });
  await shows('live', '0');
  gateway.permit('let-me-in', {});
  await shows('live', '5', 'five failed', 'four failed', 'two jobs ended team-a,team-b', 'two failed', 'one failed');
});

test.each([
    ['no namespace any more', { namespaces: [] }],
    ['no jobs any more', { kinds: ['pods'] }],
  ])('a bell has nothing that was revoked while it was cut off: %s', async (_, user) => {
    gateway.inbox = new MockInbox();
    gateway.inbox.tell('one', 'Failed');
    const inbox = inboxOf(kc);
    inbox.subscribe(() => undefined);
    const shows = (...told: string[]) => soon(() => [inbox.getSnapshot().status, ...inbox.getSnapshot().data.map(({ title }) => title)]).toEqual(told);
    await shows('live', 'one failed');
    gateway.cutAll();
    gateway.permit('let-me-in', user);
    await shows('live');
  });

  test('a cluster that is away is told, and what happened meanwhile comes before it is live', async () => {
    await begin();
    const heal = gateway.fault.stale();
    await isNotLive(rows, 'one');
    put('two');
    const other = watched('team-a'); // who comes meanwhile
    await isNotLive(other, 'one');
    heal();
    await rows.shows('live', 'one', 'two');
    await other.shows('live', 'one', 'two');
  });

  test('what is late is waited for', async () => {
    put('one');
    gateway.fault.slow(300);
    const before = performance.now();
    rows = watched();
    expect(rows.watch.getSnapshot().status).toBe('loading');
    await rows.shows('live', 'one');
    expect(performance.now() - before).toBeGreaterThan(290);
    gateway.fault.heal();
    put('two');
    await rows.shows('live', 'one', 'two');
  });

  test('a token that was revoked is asked for anew', async () => {
    kc.close();
    const asked: TokenReason[] = [];
    kc = createKubecast({ token: (reason) => (asked.push(reason), asked.length > 1 ? 'another' : 'let-me-in'), fetch: gateway.fetch, random: () => 0, linger: 0 });
    await begin();
    gateway.users.set('another', {});
    gateway.fault.revoke('let-me-in');
    put('two');
    await rows.shows('live', 'one', 'two');
    expect(asked.length).toBeGreaterThan(1);
    expect((await gateway.fetch('/apis/batch/v1/jobs', { headers: { Authorization: 'Bearer let-me-in' } })).status).toBe(401);
  });

  test('what is too old is told anew, and a page of it is 410 with a token that goes on', async () => {
    await begin();
    put('three');
    const page = async (token = ''): Promise<{ status: number; names: string[]; token: string }> => {
      const answer = await gateway.fetch(`/apis/batch/v1/jobs?limit=1&continue=${token}`, { headers: { Authorization: 'Bearer let-me-in' } });
      const { items = [], metadata } = (await answer.json()) as { items?: KubeObject[]; metadata: { continue?: string } };
      return { status: answer.status, names: items.map((item) => item.metadata.name), token: metadata.continue ?? '' };
    };
    const first = await page();
    gateway.fault.expire();
    const gone = await page(first.token);
    expect([first.names, gone.status]).toEqual([['one'], 410]);
    expect((await page(gone.token)).names).toEqual(['three']);
    put('two');
    await rows.shows('live', 'one', 'three', 'two');
  });

  test.each(['drain', 'tooMany'] as const)('%s is waited out', async (fault) => {
    await begin();
    const heal = gateway.fault[fault]();
    gateway.fault.cut();
    await isNotLive(rows, 'one');
    const answer = await gateway.fetch('/apis/batch/v1/jobs', { headers: { Authorization: 'Bearer let-me-in' } });
    expect([answer.status, answer.headers.get('Retry-After')]).toEqual([fault === 'drain' ? 503 : 429, '1']);
    heal();
    kc.wake();
    await rows.shows('live', 'one');
  });

  test('a permission that is taken away while somebody looks takes the rows away, and the rest goes on', async () => {
    await begin();
    put('elsewhere', 'team-b');
    await rows.shows('live', 'one', 'elsewhere');
    gateway.permit('let-me-in', { namespaces: ['team-a'] });
    await rows.shows('live', 'one');
    gateway.permit('let-me-in', {});
    await rows.shows('live', 'one', 'elsewhere');
  });
});

describe('the logs of containers', { timeout: 60_000 }, () => {
  const told = (entries: readonly LogEntry[]): string[] => entries.map((entry) => [entry.type, entry.pod, entry.type === 'line' ? entry.text : entry.type === 'ended' ? entry.exitCode : ''].join(' ').trim());

  test('of a job are those of its pods, over runs and cuts, each line once', async () => {
    const { metadata } = put('train');
    gateway.cluster.put('pods', { metadata: { name: 'train-0', namespace: 'team-a', ownerReferences: [{ apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: metadata.uid }] } });
    gateway.logs.write('train-0', 'epoch 1');
    gateway.logs.write('other-0', 'nobody asked');
    const log = kc.follow(logs(jobs, { namespace: 'team-a', name: 'train' }));
    log.subscribe(() => undefined);
    const shows = (...entries: string[]) => soon(() => told(log.getSnapshot().data)).toEqual(entries);
    await shows('started train-0', 'line train-0 epoch 1');
    gateway.fault.cut();
    gateway.logs.end('train-0', { exitCode: 137 });
    gateway.logs.write('train-0', 'again');
    await shows('started train-0', 'line train-0 epoch 1', 'ended train-0 137', 'started train-0', 'line train-0 again');
    gateway.logs.lose('train-0', 'unavailable', { message: 'no disk' });
    await soon(() => log.getSnapshot().data.at(-1)).toMatchObject({ type: 'reset', reason: 'unavailable', message: 'no disk' });
  });

  test('end for who may not read them any more, and are refused to who may not at all', async () => {
    gateway.logs.write('web-0', 'hello');
    const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });
    const log = kc.follow(logs(pods, { namespace: 'team-a', name: 'web-0' }));
    log.subscribe(() => undefined);
    await soon(() => log.getSnapshot().status).toBe('live');
    gateway.permit('let-me-in', { logs: false });
    await soon(() => log.getSnapshot().status).toBe('denied');
    const answer = await gateway.fetch('/api/v1/namespaces/team-a/pods/web-0/log', { headers: { Authorization: 'Bearer let-me-in' } });
    expect(answer.status).toBe(403);
  });

  test('are text for who asks for text: the last lines, of the run before, followed to the end', async () => {
    const ask = (path: string) => gateway.fetch(path, { headers: { Authorization: 'Bearer let-me-in', Accept: '*/*' } });
    gateway.logs.write('web-0', 'first');
    gateway.logs.end('web-0', { exitCode: 1 });
    for (const text of ['a', 'b', 'c']) gateway.logs.write('web-0', text);
    expect(await (await ask('/api/v1/namespaces/team-a/pods/web-0/log?tailLines=2')).text()).toBe('b\nc\n');
    expect(await (await ask('/api/v1/namespaces/team-a/pods/web-0/log?previous=true')).text()).toBe('first\n');
    const followed = await ask('/api/v1/namespaces/team-a/pods/web-0/log?follow=true&tailLines=1');
    gateway.logs.write('web-0', 'd');
    gateway.logs.end('web-0');
    expect(await followed.text()).toBe('c\nd\n');
    expect(await (await ask('/logs/api/v1/namespaces/team-a/pods?follow=false')).text()).toBe('');
    expect(await (await ask('/logs/api/v1/namespaces/team-a/pods/web-0?follow=false&search=first')).text()).toBe('first\n');
  });

  test('are read by their places and searched, with what stands beside a match, over the last two runs', async () => {
    const ask = async (query: string) => (await (await gateway.fetch(`/logs/api/v1/namespaces/team-a/pods/web-0?${query}`, { headers: { Authorization: 'Bearer let-me-in', Accept: '*/*' } })).json()) as Record<string, unknown>;
    for (const [run, text] of ['forgotten', '\u001b[31mEr\u001b[0mror', 'error again'].entries()) {
      gateway.logs.write('web-0', text, { time: `2026-01-01T00:0${run}:00Z` });
      if (run < 2) gateway.logs.end('web-0', { exitCode: 1 });
    }
    const types = (items: unknown): unknown => (items as { type: string; text?: string }[]).map(({ type, text }) => text ?? type);
    const all = await ask('view=lines');
    expect([types(all.items), all.count, all.complete, all.first]).toEqual([['started', '\u001b[31mEr\u001b[0mror', 'ended', 'started', 'error again'], 5, true, '2026-01-01T00:01:00Z']);
    expect(await ask('view=lines&from=1&limit=1&time=2026-01-01T00:01:30Z')).toMatchObject({ from: 1, items: [{ type: 'line', pod: 'web-0' }], count: 5, index: 4, complete: false });
    const found = await ask('view=search&search=ERROR&ignoreCase=true&context=1');
    expect((found.matches as { index: number; before: unknown; after?: unknown }[]).map(({ index, before, after = [] }) => [index, types(before), types(after)])).toEqual([[1, ['started'], ['ended']], [4, ['started'], []]]);
    expect(await ask('view=search&search=error&limit=1')).toMatchObject({ matches: [{ index: 4 }], count: 5, complete: false });
    expect(await ask('view=search&search=error')).toMatchObject({ complete: true });
  });
});

test('what is past of a job is what it went through, by filters and pages, and as far as it may be seen', { timeout: 60_000 }, async () => {
  const past = (gateway.past = new MockPast());
  for (const [state, at] of [['Pending', '2026-01-01T00:00:00Z'], ['Running', '2026-01-01T00:00:10Z'], ['Failed', '2026-01-01T00:01:10Z']] as const) {
    past.record('train', state, { at, ...(state === 'Failed' && { cause: { text: 'out of memory', reason: 'OOMKilled' } }) });
  }
  past.record('eval', 'Pending', { namespace: 'team-b' });
  past.run('train', 'train-0', { exitCode: 137 });
  past.keep('train', { spec: { kind: 'Job', metadata: { name: 'train' } }, log: 'the end\n' });
  const [job] = (await pastJobs(kc, jobs, { search: 'TRAI' })).items;
  expect(job).toMatchObject({ state: 'Failed', durations: { Pending: 10, Running: 60 }, waited: { over: 10_000 }, ran: { over: 60_000 }, cause: { reason: 'OOMKilled' } });
  const first = await pastJobs(kc, jobs, { limit: 1 });
  expect([first.items.map(({ name }) => name), first.more]).toEqual([['eval'], true]);
  expect((await pastJobs(kc, jobs, { limit: 1, continue: first.continue })).items.map(({ name }) => name)).toEqual(['train']);
  await expect(pastJobs(kc, jobs, { limit: 1, owner: 'mara', continue: first.continue })).rejects.toThrow('another question');
  expect(await pastLog(kc, jobs, { namespace: 'team-a', name: 'train', uid: 'train' })).toBe('the end\n');
  expect((await pastRuns(kc, jobs, { job: 'train' })).items).toMatchObject([{ name: 'train-0', exitCode: 137 }]);
  expect(await pastEnds(kc, jobs, { by: 'namespace' })).toMatchObject([{ key: 'team-a', failed: 1 }]);
  expect(await pastUsage(kc, jobs, { by: 'cause', causes: ['OOMKilled'] })).toMatchObject([{ key: 'OOMKilled', jobs: 1, waitedSeconds: { count: 1, max: 10 }, ranSeconds: { count: 1, max: 60 } }]);
  past.record('found', 'Running', { namespace: 'team-c', at: '2026-01-01T00:00:10Z', waited: null });
  expect(await pastUsage(kc, jobs, { namespace: 'team-c' })).toMatchObject([{ key: 'team-c', jobs: 1, waitedSeconds: null, ranSeconds: null }]);
  const stream = kc.follow(transitions(jobs, { namespace: 'team-a', limit: 2 }));
  stream.subscribe(() => undefined);
  await soon(() => stream.getSnapshot().data.map(({ to }) => to)).toEqual(['Running', 'Failed']);
  past.record('eval', 'Running', { namespace: 'team-b' });
  past.record('train', 'Retrying');
  await soon(() => stream.getSnapshot().data.map(({ to }) => to)).toEqual(['Running', 'Failed', 'Retrying']);
  gateway.permit('let-me-in', { namespaces: ['team-b'] });
  expect((await pastJobs(kc, jobs, {})).items.map(({ name }) => name)).toEqual(['eval']);
  await soon(() => stream.getSnapshot().status).toBe('denied');
});

test('an object is known by its name: what is put again is the same, what has another uid replaces it, and no group or kind is taken for a plural', async () => {
  const { shows, watch } = watched();
  const { metadata } = put('train');
  await shows('live', 'train');
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a', labels: { again: 'yes' } } });
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-b' } });
  await soon(() => watch.getSnapshot().data.map((job) => [job.metadata.uid === metadata.uid, job.metadata.namespace, job.metadata.labels])).toEqual([
    [true, 'team-a', { again: 'yes' }],
    [false, 'team-b', undefined],
  ]);
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a', uid: 'made-anew' } });
  await soon(() => watch.getSnapshot().data.map((job) => job.metadata.uid).includes('made-anew')).toBe(true);
  await soon(() => watch.getSnapshot().data.length).toBe(2);
  const draft = { kind: 'Job', metadata: { name: 'train' } };
  for (const wrong of ['jobs.batch', 'Job', 'job', '']) expect(() => gateway.cluster.put(wrong, draft)).toThrow('"jobs"');
  gateway.cluster.put('endpoints', { kind: 'Endpoints', metadata: { name: 'train' } });
});

test("what is recorded of a job's name is of the object that has it, also when that is gone", async () => {
  const past = (gateway.past = new MockPast());
  const { uid } = put('train').metadata;
  past.record('train', 'Running');
  past.run('train', 'train-0', { exitCode: 137 });
  gateway.cluster.remove('jobs', uid);
  past.record('train', 'Deleted');
  past.keep('train', { log: 'the end\n' });
  past.record('train', 'Running', { namespace: 'team-b' });
  expect((await pastJobs(kc, jobs, { uid })).items).toMatchObject([{ uid, state: 'Deleted' }]);
  expect((await pastRuns(kc, jobs, { job: uid })).items).toMatchObject([{ name: 'train-0' }]);
  expect(await pastLog(kc, jobs, { namespace: 'team-a', name: 'train', uid })).toBe('the end\n');
  expect((await pastJobs(kc, jobs, {})).items).toHaveLength(2);
});

test('pages of other origins may call, each or those that are named, also by what a browser asks before', async () => {
  const ask = async (origin: string, path: string, method: string, more = {}): Promise<readonly unknown[]> => {
    const { status, headers } = await gateway.fetch(path, { method, headers: { Origin: origin, Authorization: 'Bearer let-me-in', ...more } });
    return [status, headers.get('Access-Control-Allow-Origin'), headers.get('Access-Control-Allow-Methods')];
  };
  const page = 'http://localhost:5173';
  const before = { 'Access-Control-Request-Method': 'POST' };
  expect(await ask(page, '/apis/batch/v1/jobs', 'GET')).toEqual([200, page, null]);
  expect(await ask(page, '/stream', 'OPTIONS', before)).toEqual([204, page, 'GET, HEAD, OPTIONS']);
  expect(await ask(page, '/auth/ticket', 'OPTIONS', before)).toEqual([204, page, 'POST, OPTIONS']);
  expect(await ask(page, '/nothing', 'GET')).toEqual([404, page, null]);
  gateway.origins = new Set(['http://localhost:5174']);
  expect(await ask(page, '/apis/batch/v1/jobs', 'GET')).toEqual([200, null, null]);
  expect(await ask('http://localhost:5174', '/apis/batch/v1/jobs', 'GET')).toEqual([200, 'http://localhost:5174', null]);
});

test('who somebody is and what they may do is theirs', { timeout: 60_000 }, async () => {
  put('one');
  gateway.permit('let-me-in', { namespaces: ['team-a'], kinds: ['jobs.batch'], username: 'mara', groups: ['team-a'] });
  const me = meOf(kc, ['jobs.batch', 'pods']);
  me.subscribe(() => undefined);
  await soon(() => me.getSnapshot().data).toMatchObject({ username: 'mara', groups: ['team-a'], clusters: [{ watch: [{ namespaces: ['team-a'] }, { all: false, namespaces: [] }] }] });
  for (const [query, allowed] of [[{ namespace: 'team-a' }, true], [{ namespace: 'team-b' }, false], [{ namespace: 'team-a', verb: 'delete' }, false]] as const) {
    const access = accessOf(kc, jobs, query);
    const leave = access.subscribe(() => undefined);
    await soon(() => access.getSnapshot().data?.allowed).toBe(allowed);
    leave();
  }
});

test('a made-up cluster has something for each page of a portal', async () => {
  const world = new MockWorld(gateway);
  for (let moment = 0; moment < 30; moment++) world.tick();
  const failed = [...(gateway.past?.jobs.values() ?? [])].find(({ state }) => state === 'Failed');
  expect(failed?.cause).toMatchObject({ reason: 'OOMKilled' });
  const history = '/history/apis/batch/v1/jobs';
  const paths = ['/api/v1/nodes', '/api/v1/pods', '/apis/batch/v1/jobs', '/api/v1/events?fieldSelector=type%3DWarning', history, `${history}?owner=me`, `${history}?view=runs`, `${history}?view=ends&by=cause`, `${history}?view=usage&by=owner`, '/queues', '/notifications'];
  for (const path of paths) {
    const { items } = (await (await gateway.fetch(path, { headers: { Authorization: 'Bearer let-me-in' } })).json()) as { items: unknown[] };
    expect([path, items.length > 0]).toEqual([path, true]);
  }
  const text = await (await gateway.fetch(`/logs/apis/batch/v1/namespaces/${failed?.namespace}/jobs/${failed?.name}?follow=false`, { headers: { Authorization: 'Bearer let-me-in', Accept: '*/*' } })).text();
  expect(text).toContain('CUDA out of memory');
}, 60_000);

test('a browser has no session any more whose token has ended', async () => {
  const begun = await gateway.fetch('/auth/session', { method: 'POST', headers: { Authorization: 'Bearer let-me-in' } });
  const cookie = begun.headers.get('Set-Cookie')?.split(';')[0] ?? '';
  const session = async (): Promise<unknown> => (await gateway.fetch('/auth/session', { headers: { Cookie: cookie } })).json();
  expect(await session()).toHaveProperty('username');
  gateway.users.set('let-me-in', { expiresAt: Date.now() - 1 });
  expect((await gateway.fetch('/auth/me', { headers: { Cookie: cookie } })).status).toBe(401);
  expect(await session()).toEqual({ login: false, renewable: false });
});

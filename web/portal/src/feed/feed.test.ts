import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frame, ScriptedFetch } from '../../../mock/fetch.ts';
import { Feed } from './feed.ts';

let server: ScriptedFetch;
let feed: Feed;

beforeEach(() => {
  vi.useFakeTimers();
  server = new ScriptedFetch();
  vi.stubGlobal('fetch', server.fetch);
});

afterEach(() => {
  feed.close();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

const settle = () => vi.advanceTimersByTimeAsync(0);
const asked = () =>
  [...new URL(server.last.url, 'http://gateway').searchParams].filter(([name]) => name !== 'heartbeat').map(([name, path]) => `${name}=${path.split('?')[0]}`);
const names = () => asked().map((watch) => watch.split('=')[0]).join();
const job = (uid: string, namespace: string) => frame('jobs.added', 'e', { metadata: { uid, name: uid, namespace } });
const rows = () => feed.getSnapshot().live.collection('jobs').getSnapshot().items.map(({ metadata }) => metadata.uid);

async function open(namespace = ''): Promise<void> {
  feed = new Feed({ token: () => 't', namespace, page: 'jobs' });
  await settle();
}

/** The stream is refused, and the gateway asked what may be watched. */
async function refuse(message = 'jobs is forbidden'): Promise<void> {
  server.last.refuse(403, {}, JSON.stringify({ message }));
  await settle();
  expect(server.last.url).toBe('/auth/me?kinds=jobs.batch%2Cpods%2Cnamespaces');
}

/** What of each kind may be watched: everything, nothing, or some namespaces. */
async function answer(may: { jobs?: true | string[]; pods?: true | string[]; namespaces?: true | string[] }): Promise<void> {
  const kind = (resource: string, what: true | string[] | undefined) => ({
    group: resource === 'jobs' ? 'batch' : '',
    resource,
    all: what === true,
    namespaces: what === true ? [] : (what ?? []),
  });
  const watch = [kind('jobs', may.jobs), kind('pods', may.pods), kind('namespaces', may.namespaces)];
  server.last.refuse(200, {}, JSON.stringify({ clusters: [{ name: 'default', default: true, watch }] }));
  await settle();
}

test('what is on screen on one stream, of all namespaces or of one', async () => {
  await open();
  expect(asked()).toEqual(['jobs=/apis/batch/v1/jobs', 'namespaces=/api/v1/namespaces']);
  feed.setNamespace('team-a');
  await settle();
  expect(asked()).toEqual(['jobs=/apis/batch/v1/namespaces/team-a/jobs', 'namespaces=/api/v1/namespaces']);
  expect(server.requests[0]?.aborted).toBe(true);
});

test('another table: the stream goes on with it, from where it is, and without the first', async () => {
  await open();
  server.last.accept(job('a', 'team-a'), frame('namespaces.synced', 'e.namespaces-1', { resourceVersion: '1', count: 0 }));
  await settle();
  feed.setPage('pods');
  await settle();
  expect(names()).toBe('pods,namespaces');
  expect(server.last.headers.get('Last-Event-ID')).toBe('e.namespaces-1');
  expect(feed.getSnapshot().connection.getSnapshot().phase).toBe('live');
  server.last.accept(frame('namespaces.bookmark', 'e.namespaces-1', { resourceVersion: '1' }));
  await settle();
  expect(server.requests.map(({ aborted }) => aborted)).toEqual([true, false]);
  feed.setPage('jobs');
  expect(rows()).toEqual(['a']);
});

test('no more of an object is asked for than is shown', async () => {
  await open();
  for (const path of new URL(server.last.url, 'http://gateway').searchParams.values()) {
    if (path.startsWith('/')) expect(new URL(path, 'http://gateway').searchParams.get('fields')).toMatch(/metadata\./);
  }
});

test('a page that nobody looks at has no stream, whatever it does meanwhile', async () => {
  await open();
  server.last.accept(job('a', 'team-a'));
  await settle();
  feed.pause();
  feed.setNamespace('team-a');
  await vi.advanceTimersByTimeAsync(60_000);
  expect(server.requests.map(({ aborted }) => aborted)).toEqual([true]);
  feed.resume();
  await settle();
  expect(server.requests).toHaveLength(2);
});

test('a namespace that is no name cannot reach another path', async () => {
  await open('../../secrets?x=');
  expect(asked()[0]).toBe('jobs=/apis/batch/v1/namespaces/..%2F..%2Fsecrets%3Fx%3D/jobs');
});

test('who may not list namespaces still gets the table, and is not asked for them again', async () => {
  await open('team-a');
  await refuse('namespaces is forbidden');
  await answer({ jobs: true, pods: ['team-a', 'team-b'] });
  expect(names()).toBe('jobs');
  server.last.accept();
  await settle();
  expect(feed.getSnapshot()).toMatchObject({ watches: ['jobs'], forbidden: false });
  feed.setNamespace('team-b');
  await settle();
  expect(names()).toBe('jobs');
});

test('whoever may see jobs only gets jobs, after one refusal and one question', async () => {
  await open('team-a');
  await refuse();
  await answer({ jobs: ['team-a'], pods: ['team-b'] });
  expect(names()).toBe('jobs');
  server.last.accept();
  await settle();
  expect(feed.getSnapshot()).toMatchObject({ watches: ['jobs'], forbidden: false });
  expect(server.requests).toHaveLength(3);
});

test('while the gateway is asked nothing says that one may not see what one may', async () => {
  await open('team-a');
  await refuse();
  expect(feed.getSnapshot().connection.getSnapshot().phase).toBe('connecting');
  expect(feed.getSnapshot().forbidden).toBe(false);
  await answer({});
  await refuse();
  expect(feed.getSnapshot().connection.getSnapshot().phase).toBe('connecting');
  expect(feed.getSnapshot().forbidden).toBe(false);
  await answer({});
  expect(feed.getSnapshot().connection.getSnapshot()).toMatchObject({ phase: 'denied', reason: 'http:403' });
});

test('a gateway that does not look for namespaces may still show one that is asked for', async () => {
  await open('team-a');
  await refuse();
  await answer({});
  expect(names()).toBe('jobs');
  server.last.accept(job('a', 'team-a'));
  await settle();
  expect(rows()).toEqual(['a']);
  expect(feed.getSnapshot()).toMatchObject({ forbidden: false, refusal: 'jobs is forbidden' });
});

test('nothing at all: says so in the words of the first refusal, and asks no more', async () => {
  await open();
  await refuse('refusal 0');
  await answer({});
  expect(feed.getSnapshot()).toMatchObject({ forbidden: true, refusal: 'refusal 0' });
  await vi.advanceTimersByTimeAsync(600_000);
  expect(server.requests).toHaveLength(2);
});

test('a gateway that refuses what it said to be allowed is not asked for ever', async () => {
  await open();
  for (const message of ['refusal 0', 'refusal 1']) {
    await refuse(message);
    await answer({ jobs: true, pods: true, namespaces: true });
  }
  expect(feed.getSnapshot()).toMatchObject({ forbidden: true, refusal: 'refusal 0' });
  await vi.advanceTimersByTimeAsync(600_000);
  expect(server.requests).toHaveLength(4);
});

test('a permission that is lost later leaves the rest on screen', async () => {
  await open();
  await refuse();
  await answer({ jobs: true, pods: true });
  const stream = server.last.accept(job('a', 'team-a'));
  await settle();
  stream.push(frame('goodbye', 'e', { reason: 'revoked' }));
  await settle();
  await vi.advanceTimersByTimeAsync(60_000);
  await refuse('pods is forbidden');
  await answer({ jobs: true });
  expect(names()).toBe('jobs');
  expect(rows()).toEqual(['a']);
  expect(feed.getSnapshot()).toMatchObject({ forbidden: false });
});

test('no answer is no permission, and can be tried again', async () => {
  await open();
  await refuse();
  server.last.refuse(503);
  await settle();
  expect(feed.getSnapshot()).toMatchObject({ forbidden: true });
  feed.retry();
  await settle();
  expect(names()).toBe('jobs,namespaces');
});

test('another namespace, or another try, starts from the full set where nothing is allowed', async () => {
  await open();
  await refuse();
  await answer({});
  feed.setNamespace('team-a');
  await settle();
  expect(names()).toBe('jobs,namespaces');
  expect(feed.getSnapshot()).toMatchObject({ forbidden: false, refusal: undefined });
  for (let attempt = 0; attempt < 3; attempt++) {
    await refuse();
    await answer({ jobs: ['team-b'] });
  }
  expect(feed.getSnapshot()).toMatchObject({ forbidden: true });
  feed.retry();
  await settle();
  expect(names()).toBe('jobs,namespaces');
});

test('rows in sight before and after a change of namespace are there at once, others are not', async () => {
  await open();
  server.last.accept(job('a', 'team-a'), job('b', 'team-b'));
  await settle();
  expect(rows()).toEqual(['a', 'b']);
  feed.setNamespace('team-a');
  expect(rows()).toEqual(['a']);
  await settle();
  server.last.accept(frame('jobs.synced', 'e.jobs-1', { resourceVersion: '1', count: 0 }));
  await settle();
  expect(rows()).toEqual([]); // the gateway has the last word
});

test('the namespaces in which something may be seen are known while all are watched, and remembered while one is', async () => {
  await open();
  const visible = () => feed.getSnapshot().visible;
  server.last.accept(frame('jobs.narrowed', 'e', { namespaces: ['a', 'b'] }));
  await settle();
  expect(visible()).toEqual(['a', 'b']);
  feed.setNamespace('a');
  await settle();
  server.last.accept(frame('jobs.synced', 'e.jobs-1', { resourceVersion: '1', count: 0 }));
  await settle();
  expect(visible()).toEqual(['a', 'b']);
  feed.setNamespace('');
  await settle();
  const all = server.last.accept();
  await settle();
  expect(visible()).toEqual(['a', 'b']); // until something else is told
  all.push(frame('jobs.narrowed', 'e', { namespaces: ['b'] }));
  await settle();
  expect(visible()).toEqual(['b']);
  all.push(frame('jobs.synced', 'e', { resourceVersion: '1', count: 0 }));
  all.push(frame('jobs.widened', 'e', { all: true, namespaces: [] }));
  await settle();
  expect(visible()).toBeUndefined();
});

test('401 is left to the sign-in', async () => {
  await open();
  server.last.refuse(401);
  await settle();
  expect(server.requests).toHaveLength(1);
  expect(feed.getSnapshot().live.connection.getSnapshot()).toMatchObject({ phase: 'denied', reason: 'http:401' });
});

// What is on disk is shown at once, by whom it may be seen only, and the stream goes on from there.

import 'fake-indexeddb/auto';
import { webcrypto } from 'node:crypto';
import { deleteDB, openDB } from 'idb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ScriptedFetch } from '../../../mock/fetch.ts';
import { MockGateway } from '../../../mock/gateway.ts';
import { counts, createKubecast, defineResource, logs, page, type Kubecast, type KubeObject, type Watch } from '../index.ts';
import type { Share } from '../clientoptions.ts';
import { tabs } from '../tabs/index.ts';
import { MockBrowser } from '../../../mock/browser.ts';
import { keepOffline, type Offline, type OfflineOptions } from './index.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject & { readonly status?: { readonly phase?: string } }>()({ version: 'v1', plural: 'pods' });
const secrets = defineResource<KubeObject>()({ version: 'v1', plural: 'secrets' });

// eslint-disable-next-line @typescript-eslint/unbound-method -- called on each store
const real = IDBObjectStore.prototype.put;
let gateway: MockGateway;
const open: { readonly kc: Kubecast; readonly offline: Offline }[] = [];

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  gateway = new MockGateway();
});
afterEach(async () => {
  for (const { kc, offline } of open.splice(0)) close({ kc, offline });
  gateway.cutAll();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  await deleteDB('kubecast');
});

const pass = (ms = 200): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
/** What takes the disk has it in virtual time. */
async function soon<T>(what: Promise<T>): Promise<T> {
  let done = false;
  const settled = what.finally(() => (done = true));
  settled.catch(() => undefined);
  while (!done) await vi.advanceTimersByTimeAsync(1);
  return settled;
}
const nobody = (): void => undefined;
const names = (watch: Watch<KubeObject>): string[] => watch.getSnapshot().data.map(({ metadata }) => metadata.name);

async function begin(options: Partial<OfflineOptions> = {}, fetch = gateway.fetch, at = '', share?: Share): Promise<{ kc: Kubecast; offline: Offline }> {
  const kc = createKubecast({ gateway: at, token: () => 'let-me-in', fetch, random: () => 0.5, share });
  const offline = await soon(keepOffline(kc, { user: 'mara', ...options }));
  open.push({ kc, offline });
  return { kc, offline };
}
/** As a browser ends a page: without a word. */
function close({ kc, offline }: { kc: Kubecast; offline: Offline }): void {
  offline.close();
  kc.close();
}
/** All that is on disk, as text. */
async function onDisk(): Promise<string> {
  const db = await soon(openDB('kubecast'));
  const all: unknown[] = [];
  for (const name of db.objectStoreNames) all.push(await soon(db.getAll(name)), await soon(db.getAllKeys(name)));
  db.close();
  return JSON.stringify(all);
}
const put = (name: string, resource = 'jobs', namespace = 'team-a'): KubeObject => gateway.cluster.put(resource, { metadata: { name, namespace, uid: name } });

/** A page that has shown jobs and pods, is written, and gone. */
async function visited(options: Partial<OfflineOptions> = {}): Promise<void> {
  for (const name of ['a', 'b', 'c']) put(name);
  put('p', 'pods');
  const one = await begin(options);
  one.kc.watch(jobs).subscribe(nobody);
  one.kc.watch(pods).subscribe(nobody);
  await pass();
  expect(one.kc.watch(jobs).getSnapshot().status).toBe('live');
  await soon(one.offline.save());
  close(one);
  await pass(31_000); // by then another one may write
}

test('what was there is shown at once with its time, and only what was missed is told', async () => {
  await visited();
  const then = Date.now() - 31_000;
  await pass(60_000);
  gateway.cluster.remove('jobs', 'b');
  put('d');
  const told: string[] = [];
  gateway.requests.length = 0;
  const { kc } = await begin({}, async (input, init) => {
    const response = await gateway.fetch(input, init);
    const [own, copy] = response.body?.tee() ?? [];
    void (async () => {
      for await (const text of copy?.pipeThrough(new TextDecoderStream()) ?? []) told.push(...(text.match(/^event: .*/gm) ?? []));
    })().catch(nobody);
    return new Response(own, response);
  });
  const watch = kc.watch(jobs);
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', data: [{ metadata: { name: 'a' } }, { metadata: { name: 'b' } }, { metadata: { name: 'c' } }] });
  expect(watch.getSnapshot().asOf).toBeGreaterThan(then - 1_000);
  expect(watch.getSnapshot().asOf).toBeLessThanOrEqual(then);
  const statuses: string[] = [];
  watch.subscribe(() => statuses.push(watch.getSnapshot().status));
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'live', asOf: undefined });
  expect(names(watch)).toEqual(['a', 'c', 'd']);
  expect(statuses).not.toContain('loading');
  expect(gateway.requests.map(({ lastEventId }) => lastEventId)).toEqual([expect.stringMatching(/^e1\.w0-\d+\.w1-\d+$/)]);
  expect(told.filter((line) => line.includes('w0')).sort()).toEqual(['event: w0.added', 'event: w0.bookmark', 'event: w0.deleted']);
});

test('without a network the rows stay, and say as of when they are', async () => {
  await visited();
  gateway.away = true;
  vi.setSystemTime(Date.now() + 3_600_000);
  const { kc } = await begin();
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass(60_000);
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', data: [{}, {}, {}] });
  expect(Date.now() - (watch.getSnapshot().asOf ?? 0)).toBeGreaterThan(3_600_000);
  gateway.away = false;
  put('d');
  await pass(60_000);
  expect(watch.getSnapshot().status).toBe('live');
  expect(names(watch)).toEqual(['a', 'b', 'c', 'd']);
});

test('a position that is too old is a snapshot beneath the old rows, and what is not in it is gone', async () => {
  await visited();
  gateway.cluster.remove('jobs', 'b');
  gateway.cluster.compact();
  const { kc } = await begin();
  const watch = kc.watch(jobs);
  const seen: string[] = [];
  watch.subscribe(() => seen.push(`${watch.getSnapshot().status} ${names(watch).join('')}`));
  await pass();
  expect(seen.at(-1)).toBe('live ac');
  expect(seen.filter((state) => !/[ab]/.test(state))).toEqual([]);
});

test('a view that was left before is shown from the disk when it is come back to, and its rows are told anew', async () => {
  for (const name of ['a', 'b', 'c']) put(name);
  const one = await begin();
  const leave = one.kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  leave();
  one.kc.watch(pods).subscribe(nobody);
  await pass(20_000);
  await soon(one.offline.save());
  close(one);

  gateway.cluster.remove('jobs', 'b');
  gateway.away = true;
  const { kc } = await begin();
  kc.watch(pods).subscribe(nobody);
  await pass(1_000);
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass(50);
  expect(watch.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: expect.any(Number) as number });
  expect(names(watch)).toEqual(['a', 'b', 'c']);
  gateway.away = false;
  put('d');
  await pass(60_000);
  expect(watch.getSnapshot().status).toBe('live');
  expect(names(watch)).toEqual(['a', 'c', 'd']);
});

test('where what has changed is told at once, rows that are read late say as of when they are, too', async () => {
  await visited();
  const written = Date.now() - 31_000;
  const kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0.5, schedule: (flush) => flush() });
  open.push({ kc, offline: await soon(keepOffline(kc, { user: 'mara', every: 3_600_000 })) });
  kc.watch(pods).subscribe(nobody);
  await pass(20_000); // in which what nobody looks at is left
  gateway.away = true;
  gateway.cutAll();
  await pass();
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass();
  expect(names(watch)).toEqual(['a', 'b', 'c']);
  const { status, asOf } = watch.getSnapshot();
  expect(status).toBe('stale');
  expect(asOf).toBeLessThanOrEqual(written);
});

test('pages and counts are kept, and logs begin anew', async () => {
  for (const name of ['a', 'b']) put(name);
  const newest = page(jobs, { limit: 1, sort: ['-metadata.name'] });
  const phases = counts(pods, ['status.phase']);
  put('p', 'pods');
  const one = await begin();
  for (const source of [newest, phases]) one.kc.follow(source as typeof newest).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  close(one);
  gateway.away = true;
  const { kc } = await begin();
  const [top, states, log] = [kc.follow(newest), kc.follow(phases), kc.follow(logs(jobs, { namespace: 'team-a', name: 'a' }))];
  for (const watch of [top, states, log]) watch.subscribe(nobody);
  await pass();
  expect(top.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', total: 2, data: [{ metadata: { name: 'b' } }] });
  expect(states.getSnapshot()).toMatchObject({ status: 'stale', reason: 'reconnecting', data: [{ count: 1 }] });
  expect(log.getSnapshot().status).toBe('loading');
});

test('nobody is shown what was another user’s, nor does it stay on disk', async () => {
  await visited();
  expect(await onDisk()).toContain('\\"name\\":\\"a\\"');
  const { kc } = await begin({ user: 'rita' }, new ScriptedFetch().fetch);
  expect(kc.watch(jobs).getSnapshot()).toMatchObject({ status: 'loading', data: [] });
  await pass();
  expect(kc.watch(jobs).getSnapshot().data).toEqual([]);
  expect(await onDisk()).not.toMatch(/mara|\\"name\\"/);
});

test('of several gateways each has its own rows', async () => {
  await visited();
  const other = await begin({}, new ScriptedFetch().fetch, 'https://other.example.org');
  expect(other.kc.watch(jobs).getSnapshot().data).toEqual([]);
  close(other);
  gateway.away = true;
  const { kc } = await begin();
  expect(kc.watch(jobs).getSnapshot().data).toHaveLength(3);
});

test('who signs out leaves nothing behind, also of what other tabs would write', async () => {
  for (const name of ['a', 'b']) put(name);
  const [one, other] = [await begin(), await begin()];
  for (const { kc } of [one, other]) kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  const writing = other.offline.save();
  await soon(one.offline.clear());
  await soon(writing);
  put('c');
  await pass(120_000);
  await soon(Promise.all([one.offline.save(), other.offline.save()]));
  expect(await onDisk()).not.toMatch(/mara|\\"name\\"/);
  expect([one.offline.end, other.offline.end]).toEqual(['cleared', 'cleared']);
});

test('a stranger with a token that is refused does not keep the rows in sight, and they go from the disk', async () => {
  await visited();
  gateway.users.clear();
  const { kc } = await begin();
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  expect(names(watch)).toHaveLength(3);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'denied', data: [] });
  expect(await onDisk()).not.toContain('\\"name\\"');
});

test.each([
  ['are fewer while the page is open', (): void => gateway.streams.forEach((stream) => stream.see(['team-b']))],
  ['are others when it comes back', (): void => {
    gateway.users.set('let-me-in', { namespaces: ['team-b'] });
    gateway.cutAll();
  }],
  ['end', (): void => {
    gateway.users.clear();
    gateway.cutAll();
  }],
])('what permissions no longer show goes from the disk at once where they %s', async (_, change) => {
  put('theirs', 'jobs', 'team-a');
  put('ours', 'jobs', 'team-b');
  const { kc, offline } = await begin();
  kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(offline.save());
  expect(await onDisk()).toContain('theirs');
  change();
  await pass(2_000); // which is before it is written again
  expect(await onDisk()).not.toContain('theirs');
  await pass(20_000);
  expect(await onDisk()).not.toContain('theirs');
});

test('Secrets and what the page leaves out never reach the disk', async () => {
  put('password', 'secrets');
  put('left-out', 'pods');
  put('a');
  const { kc, offline } = await begin();
  kc.watch(secrets).subscribe(nobody);
  kc.watch(secrets, { namespace: 'team-a' }).subscribe(nobody);
  kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(offline.save());
  expect(await onDisk()).toContain('\\"a\\"');
  expect(await onDisk()).not.toMatch(/password|secrets/);
  close({ kc, offline });
  const other = await begin({ keep: (path) => !path.includes('/pods') });
  other.kc.watch(pods).subscribe(nobody);
  await pass();
  await soon(other.offline.save());
  expect(await onDisk()).not.toContain('left-out');
});

test('what is too old is not shown, and is removed', async () => {
  await visited({ maxAge: 60_000 });
  await pass(61_000);
  const { kc } = await begin({ maxAge: 60_000 }, new ScriptedFetch().fetch);
  expect(kc.watch(jobs).getSnapshot().data).toEqual([]);
  expect(await onDisk()).not.toContain('\\"name\\"');
});

test('of more than is to be kept, what was seen last is', async () => {
  await visited();
  const one = await begin({ maxSize: 100 });
  one.kc.watch(pods).subscribe(nobody);
  await pass(20_000);
  await soon(one.offline.save());
  const said = await onDisk();
  expect(said).toContain('\\"p\\"');
  expect(said).not.toContain('\\"c\\"');
});

test('what is more than is to be kept is not made into texts again and again, and is kept once there is room', async () => {
  const uids = Array.from({ length: 100 }, (_, n) => put(`j${n}`).metadata.uid);
  const { kc } = await begin({ maxSize: 4_000 });
  kc.watch(jobs).subscribe(nobody);
  kc.watch(pods).subscribe(nobody);
  await pass(20_000);
  const made: number[] = [];
  const stringify = JSON.stringify.bind(JSON);
  vi.spyOn(JSON, 'stringify').mockImplementation((value: unknown) => {
    if (Array.isArray(value) && value.length > 50) made.push(value.length);
    return stringify(value);
  });
  put('j1'); // so that there is something to be written
  await pass(60_000);
  expect(made).toEqual([]);
  for (const uid of uids.slice(5)) gateway.cluster.remove('jobs', uid);
  await pass(20_000);
  expect(await onDisk()).toContain('\\"j4\\"');
  expect(kc.watch(jobs).getSnapshot().data).toHaveLength(5);
});

test('only what has changed is written, and what rows there are does not matter', async () => {
  for (let n = 0; n < 2_000; n++) put(`j${n}`);
  const { kc, offline } = await begin();
  kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(offline.save());
  const written: number[] = [];
  const spied = vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore, value, key) {
    if (typeof value === 'string') written.push(value.length);
    return real.call(this, value, key);
  });
  await pass(60_000);
  expect(written).toEqual([]);
  gateway.cluster.put('jobs', { metadata: { name: 'j7', namespace: 'team-a', uid: 'j7', labels: { changed: 'yes' } } });
  await pass(20_000);
  expect(written).toHaveLength(1);
  spied.mockRestore();
});

test.each([
  ['the same', jobs],
  ['something else', pods],
])('what a tab that is gone has written goes from the disk where another one, which watches %s, hears of permissions', async (_, watched) => {
  put('theirs', 'jobs', 'team-a');
  const [one, other] = [await begin(), await begin()];
  one.kc.watch(jobs).subscribe(nobody);
  other.kc.watch(watched).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  expect(await onDisk()).toContain('theirs');
  close(one);
  gateway.streams.forEach((stream) => stream.see(['team-b']));
  await pass(2_000);
  expect(await onDisk()).not.toContain('theirs');
});

/** Two tabs, of which the first has shown jobs and written them; the other has not looked at anything yet. */
async function twoTabs(): Promise<readonly [Awaited<ReturnType<typeof begin>>, Awaited<ReturnType<typeof begin>>]> {
  const [one, other] = [await begin(), await begin()];
  one.kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  return [one, other];
}

test.each([
  ['the same', jobs],
  ['something else', pods],
])('what a tab wrote before it heard of permissions goes from the disk where one that has just begun, and watches %s, hears of them', async (_, watched) => {
  put('theirs', 'jobs', 'team-a');
  const [one, other] = await twoTabs();
  close(one);
  gateway.users.set('let-me-in', { namespaces: ['team-b'] });
  other.kc.watch(watched).subscribe(nobody);
  await pass(2_000);
  expect(await onDisk()).not.toContain('theirs');
});

test('a kind that is seen otherwise than the others ends nothing in other tabs', async () => {
  put('a', 'jobs', 'team-a');
  const [one, other] = await twoTabs();
  gateway.users.set('let-me-in', { namespaces: ['team-b'] }); // as its permissions for pods are all the time
  other.kc.watch(pods).subscribe(nobody);
  await pass();
  expect(await onDisk()).not.toContain('/jobs');
  await pass(60_000);
  expect([one.offline.end, other.offline.end]).toEqual([undefined, undefined]);
  expect(await onDisk()).toContain('/jobs'); // as the tab that looks at them keeps them
});

test('a page whose permissions have changed is not kept until it was told anew', async () => {
  put('theirs', 'jobs', 'team-a');
  put('ours', 'jobs', 'team-b');
  let cut = false; // where the page is told
  gateway.sabotage = (frame) => (cut && frame.includes('.page\n') ? 0 : undefined);
  const { kc, offline } = await begin();
  kc.follow(page(jobs, { limit: 10 })).subscribe(nobody);
  await pass();
  await soon(offline.save());
  expect(await onDisk()).toContain('theirs');
  cut = true;
  gateway.users.set('let-me-in', { namespaces: ['team-b'] });
  gateway.streams.forEach((stream) => stream.see(['team-b']));
  for (let n = 0; n < 20; n++) {
    await pass(5);
    await soon(offline.save());
    expect(await onDisk()).not.toContain('theirs');
  }
  cut = false;
  await pass(30_000);
  await soon(offline.save());
  expect(await onDisk()).toContain('ours');
  expect(await onDisk()).not.toContain('theirs');
});

test('of two tabs one writes, and the other goes on when it is gone', async () => {
  put('a');
  const [one, other] = [await begin(), await begin()];
  one.kc.watch(jobs).subscribe(nobody);
  other.kc.watch(pods).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  await soon(other.offline.save());
  await pass(60_000);
  expect(await onDisk()).not.toContain('/api/v1/pods');
  close(one);
  put('p', 'pods');
  await pass(60_000);
  const said = await onDisk();
  expect(said).toContain('\\"p\\"');
  expect(said).toContain('\\"a\\"'); // which is shown, and told anew
});

test('what is not all there is not read', async () => {
  await visited();
  const db = await soon(openDB('kubecast'));
  const [key = 0] = await soon(db.getAllKeys('rows'));
  await soon(db.delete('rows', key));
  db.close();
  gateway.requests.length = 0;
  const { kc } = await begin();
  const watch = kc.watch(jobs);
  expect(watch.getSnapshot()).toMatchObject({ status: 'loading', data: [] });
  watch.subscribe(nobody);
  await pass();
  expect(gateway.requests[0]?.lastEventId).toBe('');
  expect(names(watch)).toEqual(['a', 'b', 'c']);
});

test('where the disk is full nothing is kept, and the page goes on', async () => {
  await visited();
  const { kc, offline } = await begin();
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass();
  put('d');
  vi.spyOn(IDBObjectStore.prototype, 'put').mockImplementation(function (this: IDBObjectStore, value, key) {
    if (typeof value === 'string' && value.startsWith('[')) throw new DOMException('full', 'QuotaExceededError');
    return real.call(this, value, key);
  });
  await pass(20_000);
  expect(offline.end).toBe('full');
  expect(names(watch)).toContain('d');
  vi.restoreAllMocks();
  expect(await onDisk()).not.toContain('\\"name\\"');
});

test.each([
  ['there is no IndexedDB', (): void => void vi.stubGlobal('indexedDB', undefined)],
  ['it may not be opened', (): void => void vi.spyOn(indexedDB, 'open').mockImplementation(() => { throw new DOMException('no', 'SecurityError'); })],
  ['it never opens', (): void => void vi.spyOn(indexedDB, 'open').mockImplementation(() => new IDBOpenDBRequest())],
])('where %s the page works without', async (_, break_) => {
  put('a');
  break_();
  const { kc, offline } = await begin();
  expect(offline.end).toBe('unavailable');
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass();
  expect(names(watch)).toEqual(['a']);
  await offline.save();
  // What may be there from before cannot be removed either, which who signs out is told.
  const cleared = soon(offline.clear());
  await ((globalThis as { indexedDB?: unknown }).indexedDB ? expect(cleared).rejects.toThrow() : cleared);
});

test('who signs out leaves nothing behind, also where the disk did not open when the page began', async () => {
  await visited();
  const opening = vi.spyOn(indexedDB, 'open').mockImplementation(() => new IDBOpenDBRequest());
  const { offline } = await begin();
  expect(offline.end).toBe('unavailable');
  opening.mockRestore();
  await soon(offline.clear());
  expect(await onDisk()).not.toMatch(/mara|\\"name\\"/);
});

test('a page that is open as another one’s user signs out writes no more, also where permissions change behind that', async () => {
  put('a');
  const [one, other] = [await begin(), await begin()];
  for (const { kc } of [one, other]) kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  one.kc.close();
  await soon(one.offline.clear());
  gateway.epoch = 'e2';
  gateway.cutAll();
  await pass(60_000);
  await soon(other.offline.save());
  expect(other.offline.end).toBe('cleared');
  expect(await onDisk()).not.toMatch(/mara|\\"name\\"/);
});

test('a page that is opened while another one writes takes nothing from it', async () => {
  for (const name of ['a', 'b']) put(name);
  const one = await begin();
  one.kc.watch(jobs).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  gateway.cluster.remove('jobs', 'b');
  await pass();
  // It comes between any two transactions of the one that begins.
  const real = IDBDatabase.prototype.transaction; // eslint-disable-line @typescript-eslint/unbound-method -- called on each database
  let writing: Promise<void> | undefined;
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    const begun = real.apply(this, args);
    writing ??= one.offline.save();
    return begun;
  });
  await begin();
  await soon(Promise.resolve(writing));
  put('c');
  await pass(60_000);
  expect(one.offline.end).toBeUndefined();
});

test('a newer form on disk is left alone, and a page of a newer form is let in', async () => {
  const { offline } = await begin();
  const newer = await soon(openDB('kubecast', 2));
  expect(offline.end).toBe('closed');
  const other = await begin();
  expect(other.offline.end).toBe('unavailable');
  newer.close();
});

test('a page that has begun already keeps what it shows from then on', async () => {
  await visited();
  const kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random: () => 0.5 });
  const watch = kc.watch(jobs);
  watch.subscribe(nobody);
  await pass(1);
  put('d');
  const offline = await soon(keepOffline(kc, { user: 'mara' }));
  open.push({ kc, offline });
  await pass();
  await soon(offline.save());
  expect(names(watch)).toEqual(['a', 'b', 'c', 'd']);
  expect(await onDisk()).toContain('\\"d\\"');
});

test('a refusal of one watch takes what is on disk with it, and what is left is kept again', async () => {
  await visited();
  gateway.kinds = new Set(['pods']);
  const { kc } = await begin();
  const watch = kc.watch(jobs);
  for (const one of [watch, kc.watch(pods)]) one.subscribe(nobody);
  await pass();
  expect(watch.getSnapshot()).toMatchObject({ status: 'failed', data: [] });
  expect(await onDisk()).not.toContain('\\"name\\"');
  await pass(20_000);
  expect(await onDisk()).toContain('\\"p\\"');
});

test('what was watched before leaves the page room on its stream', async () => {
  put('a');
  const one = await begin();
  for (let n = 0; n < 20; n++) one.kc.watch(jobs, { namespace: `n${n}` }).subscribe(nobody);
  await pass();
  await soon(one.offline.save());
  close(one);
  const { kc } = await begin();
  const watches = Array.from({ length: 20 }, (_, n) => kc.watch(jobs, { namespace: `m${n}` }));
  for (const watch of watches) watch.subscribe(nobody);
  await pass(60_000);
  expect(watches[0]?.getSnapshot().status).toBe('live');
});

test('tabs that share a stream go on from the disk, too: the first one takes the gateway’s position along, and the second its rows', async () => {
  vi.spyOn(webcrypto.subtle, 'digest').mockImplementation((_, data) => Promise.resolve(new Uint8Array(data as Uint8Array).slice(0, 32).buffer));
  const shared = (browser: MockBrowser): Share => tabs({ surroundings: browser.open() });
  for (const name of ['a', 'b', 'c']) put(name);
  const before = new MockBrowser();
  const one = await begin({}, gateway.fetch, 'http://gateway', shared(before));
  one.kc.watch(jobs).subscribe(nobody);
  one.kc.watch(pods).subscribe(nobody);
  await pass(5_000);
  expect(one.kc.watch(jobs).getSnapshot().status).toBe('live');
  await soon(one.offline.save());
  expect(await onDisk()).toContain('~e1.');
  close(one);
  for (const tab of [...before.tabs]) tab.kill();
  await pass(60_000);
  gateway.cluster.remove('jobs', 'b');
  put('d');
  gateway.requests.length = 0;
  const after = new MockBrowser();
  const two = await begin({}, gateway.fetch, 'http://gateway', shared(after));
  const three = await begin({}, gateway.fetch, 'http://gateway', shared(after));
  const statuses: string[] = [];
  for (const { kc } of [two, three]) kc.watch(jobs).subscribe(() => statuses.push(kc.watch(jobs).getSnapshot().status));
  await pass(5_000);
  expect(gateway.requests[0]?.lastEventId).toMatch(/^e1\.w\w+-\d+\.w\w+-\d+$/);
  for (const { kc } of [two, three]) {
    expect(kc.watch(jobs).getSnapshot().status).toBe('live');
    expect(names(kc.watch(jobs))).toEqual(['a', 'c', 'd']);
  }
  expect(gateway.streams.size).toBe(1);
  expect(statuses).not.toContain('loading');
  close(two);
  close(three);
  for (const tab of [...after.tabs]) tab.kill();
});

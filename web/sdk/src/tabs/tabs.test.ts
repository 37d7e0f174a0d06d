import { webcrypto } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MockBrowser, type MockTab } from '../../../mock/browser.ts';
import { MockGateway } from '../../../mock/gateway.ts';
import { fetchFrom } from '../../../mock/reach.ts';
import { MockStream } from '../../../mock/stream.ts';
import { createKubecast, defineResource, queue, transitions, type Kubecast, type KubeObject, type Watch } from '../index.ts';
import { tabs } from './index.ts';

// Fifty tabs are much for a machine that has other things to do.

const pods = defineResource()({ group: '', version: 'v1', plural: 'pods' });
const jobs = defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' });

export interface Page {
  readonly tab: MockTab;
  readonly kc: Kubecast;
  readonly pods: Watch<KubeObject>;
}

let gateway: MockGateway;
let browser: MockBrowser;
let reachable: boolean;
/** What so many questions who is refused come to, in place of the gateway's answer; 0: the network. */
let unsure: { readonly code: number; times: number };
const real = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  MockBrowser.ownTimers();
  // The real one answers from another thread, in real time.
  vi.spyOn(webcrypto.subtle, 'digest').mockImplementation((_, data) => Promise.resolve(new Uint8Array(data as Uint8Array).slice(0, 32).buffer));
  gateway = new MockGateway();
  browser = new MockBrowser();
  reachable = true;
  unsure = { code: 0, times: 0 };
});

afterEach(() => {
  for (const tab of [...browser.tabs]) tab.kill();
  gateway.cutAll();
  vi.restoreAllMocks();
  vi.useRealTimers();
  Object.assign(globalThis, real);
});

const pass = (ms = 50): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

function openPage(token: string | undefined = 'let-me-in', session?: string): Page {
  const tab = browser.open();
  let page: Page | undefined;
  tab.run(() => {
    const reach = fetchFrom(() => (reachable ? gateway : undefined), tab);
    const fetch: typeof globalThis.fetch = (input, init) => {
      if (init?.method !== 'HEAD' || unsure.times === 0) return reach(input, init);
      unsure.times--;
      return unsure.code ? Promise.resolve(new Response(null, { status: unsure.code })) : Promise.reject(new TypeError('fetch failed'));
    };
    const kc = createKubecast({ gateway: 'http://gateway', ...(session === undefined ? { token: () => token } : { session: () => session }), fetch, share: tabs({ surroundings: tab }), schedule: (flush) => flush() });
    page = { tab, kc, pods: kc.watch(pods) };
    page.pods.subscribe(() => undefined);
  });
  if (!page) throw new Error('the tab does not run');
  return page;
}

const put = (name: string, resource = 'pods'): KubeObject => gateway.cluster.put(resource, { metadata: { name, uid: name, namespace: 'n' } });
const shown = ({ pods: watch }: Page): string => watch.getSnapshot().data.map(({ metadata }) => metadata.name).sort().join();
const status = ({ pods: { getSnapshot } }: Page): string => getSnapshot().reason ?? getSnapshot().status;
const leader = (all: readonly Page[]): Page => {
  const held = [...browser.locks].find(([name]) => name.endsWith(' leads'))?.[1][0]?.tab;
  const page = all.find(({ tab }) => tab === held);
  if (!page) throw new Error('nobody leads');
  return page;
};

async function openPages(count: number): Promise<Page[]> {
  const all: Page[] = [];
  for (let n = 0; n < count; n++) {
    all.push(openPage());
    await pass();
  }
  await pass(500);
  return all;
}

describe('one stream', () => {
  test('is enough for fifty tabs, of which each has all there is', async () => {
    put('a');
    const all = await openPages(50);
    expect(gateway.streams.size).toBe(1);
    put('b');
    await pass();
    expect(all.map(shown)).toEqual(Array<string>(50).fill('a,b'));
    expect(all.map(status)).toEqual(Array<string>(50).fill('live'));
    // One watch, whoever has it.
    expect([...gateway.streams][0]?.watches).toHaveLength(1);
  });

  test('carries what each of them wants, and no longer than they do', async () => {
    put('a');
    put('j', 'jobs');
    const [one, two] = (await openPages(2)) as [Page, Page];
    const other = two.kc.watch(jobs);
    let leave = (): void => undefined;
    two.tab.run(() => (leave = other.subscribe(() => undefined)));
    await pass(500);
    expect([...gateway.streams].map(({ watches }) => watches.map(({ resource }) => resource))).toEqual([['pods', 'jobs']]);
    expect(other.getSnapshot()).toMatchObject({ status: 'live', data: [{ metadata: { name: 'j' } }] });
    expect(status(one)).toBe('live');
    two.tab.run(leave);
    await pass(10_000);
    expect([...gateway.streams].map(({ watches }) => watches.map(({ resource }) => resource))).toEqual([['pods']]);
  });

  test('is not shared with another caller, and no token is told', async () => {
    gateway.users.set('another', { namespaces: ['n'] });
    put('a');
    const said: unknown[] = [];
    const clone = globalThis.structuredClone;
    vi.stubGlobal('structuredClone', (value: unknown) => (said.push(value), clone(value)));
    const all = [openPage(), openPage('another'), openPage(), openPage('another')];
    await pass(500);
    vi.unstubAllGlobals();
    expect(all.map(status)).toEqual(Array<string>(4).fill('live'));
    expect(gateway.streams.size).toBe(2);
    expect(said.length).toBeGreaterThan(4);
    expect(JSON.stringify(said)).not.toMatch(/let-me-in|another/);
  });
});

test('a page that lets go of its stream for long goes on from where it was, alone and beside others', async () => {
  put('a');
  const [one, two] = (await openPages(2)) as [Page, Page];
  for (const { tab, kc } of [one, two]) tab.run(() => kc.pause());
  await pass(60_000);
  expect(gateway.streams.size).toBe(0);
  put('b');
  one.tab.run(() => one.kc.resume());
  await pass(1_000);
  expect([status(one), shown(one)]).toEqual(['live', 'a,b']);
  expect(gateway.requests.at(-1)?.lastEventId).toMatch(/^e1\..*-101$/);
  two.tab.run(() => two.kc.resume());
  await pass(1_000);
  put('c');
  await pass();
  expect([one, two].map((page) => [status(page), shown(page)])).toEqual([['live', 'a,b,c'], ['live', 'a,b,c']]);
  expect(gateway.streams.size).toBe(1);
});

test('a tab that comes while events are missed is not told that what is old is live', async () => {
  put('a');
  const [one] = (await openPages(1)) as [Page];
  reachable = false;
  gateway.cutAll();
  await pass(60_000);
  put('b');
  const send = Reflect.get(MockStream.prototype, 'send');
  const held = vi.spyOn(MockStream.prototype, 'send').mockImplementation(function (this: MockStream, watch, type, data) {
    if (type !== 'bookmark') send.call(this, watch, type, data); // there may be more to come
  });
  reachable = true;
  for (let n = 0; gateway.streams.size === 0; n++) { // the next attempt may be half a minute away
    expect(n).toBeLessThan(600);
    await pass(100);
  }
  const two = openPage();
  for (let n = 0; n < 500; n++) {
    await pass(10);
    expect([one, two].map(status)).not.toContain('live');
  }
  held.mockRestore();
  for (const stream of gateway.streams) stream.send(stream.watches[0], 'bookmark', { resourceVersion: '102' });
  await pass();
  expect([one, two].map((page) => [status(page), shown(page)])).toEqual([['live', 'a,b'], ['live', 'a,b']]);
});

test('a tab that asks its leader twice follows what that knows it to follow', async () => {
  put('a');
  const all = await openPages(3);
  const first = leader(all);
  first.tab.kill();
  await pass(3_000);
  // The next one has resumed: of what the others follow it knows the place, not what is there, so who comes gets a watch of its own.
  browser.delay = () => 50;
  const late = openPage();
  // It asks at first, and again when it hears of somebody who leads. Between the two the leader learns what is there.
  await pass(70);
  for (const stream of gateway.streams) for (const watch of stream.watches) stream.reset(watch, 'slow');
  await pass(500);
  all.find((page) => page !== first && page !== leader(all))?.tab.kill(); // what nobody has is left out from now on
  await pass(10_000);
  put('b');
  await pass(1_000);
  expect([status(late), shown(late)]).toEqual(['live', 'a,b']);
});

describe('a tab that leads', () => {
  test.each([
    ['gone to another address', (page: Page) => page.tab.tell('stop')],
    ['killed', (page: Page) => page.tab.kill()],
    ['frozen, and told so', (page: Page) => page.tab.freeze(true)],
    ['frozen without a word', (page: Page) => page.tab.freeze(false)],
  ])('and is %s is followed within three seconds by one that goes on from where it was', async (_, end) => {
    put('a');
    const all = await openPages(5);
    const first = leader(all);
    const rest = all.filter((page) => page !== first);
    const asked = gateway.requests.length;
    end(first);
    put('b');
    for (let n = 0; n < 30 && !rest.every((page) => shown(page) === 'a,b'); n++) {
      await pass(100);
      expect(rest.map(status)).toEqual(Array<string>(4).fill('live'));
    }
    expect(rest.map(shown)).toEqual(Array<string>(4).fill('a,b'));
    const after = gateway.requests.slice(asked);
    expect(after).toHaveLength(1);
    expect(after[0]?.lastEventId).toMatch(/^e1\.\w+-\d+$/); // a resume
    expect(new Set(rest.map((page) => page.kc.connection.getSnapshot()?.status))).toEqual(new Set(['live']));
  });

  test('and comes back follows the one that leads now', async () => {
    put('a');
    const all = await openPages(3);
    const first = leader(all);
    first.tab.freeze(false);
    await pass(5_000);
    put('b');
    first.tab.thaw(false);
    await pass(2_000);
    put('c');
    await pass(500);
    expect(all.map(shown)).toEqual(['a,b,c', 'a,b,c', 'a,b,c']);
    expect(all.map(status)).toEqual(['live', 'live', 'live']);
    expect(gateway.streams.size).toBe(1);
  });

  test('and is hidden leaves that to one that is seen', async () => {
    const all = await openPages(3);
    const first = leader(all);
    first.tab.hide(true);
    await pass(1_000);
    expect(leader(all)).not.toBe(first);
    expect(all.map(status)).toEqual(['live', 'live', 'live']);
    expect(gateway.streams.size).toBe(1);
  });
});

test('a page that is about to stand still says before that it is not live', async () => {
  const all = await openPages(2);
  for (const { tab } of all) tab.tell('stop');
  await pass(0);
  expect(all.map(status)).toEqual(['reconnecting', 'reconnecting']);
  put('a');
  for (const { tab, kc } of all) {
    tab.tell('go');
    tab.run(() => kc.wake());
  }
  await pass(2_000);
  expect(all.map(shown)).toEqual(['a', 'a']);
  expect(all.map(status)).toEqual(['live', 'live']);
  expect(gateway.streams.size).toBe(1);
});

test('sessions of two users have a stream each; a renewed one has the same', async () => {
  gateway.users.set('', {});
  for (const session of ['mara until 1', 'mara until 2', 'omar until 2']) {
    const page = openPage(undefined, session);
    await pass(500);
    expect(status(page)).toBe('live');
  }
  expect(gateway.streams.size).toBe(2);
});

test('who comes after a take-over has all that there is', async () => {
  put('a');
  const all = await openPages(3);
  leader(all).tab.kill();
  await pass(1_000);
  put('b');
  const late = openPage();
  await pass(1_000);
  expect(shown(late)).toBe('a,b');
  expect(status(late)).toBe('live');
});

test('a queue is told as it is now to a tab that comes later, and when it changes to both', async () => {
  const put = (...names: string[]): void => gateway.queue({ name: 'gpu', namespace: 'n', jobs: names.map((name, n) => ({ name, position: n + 1 })) });
  const follow = ({ tab, kc }: Page, seen: string[] = []): (() => string) => {
    const watch = kc.follow(queue('n', 'gpu'));
    const now = (): string => `${watch.getSnapshot().status} ${watch.getSnapshot().data.flatMap(({ jobs: all }) => all.map((job) => (job.hidden ? '?' : job.name))).join()}`;
    tab.run(() => watch.subscribe(() => seen.push(now())));
    return now;
  };
  put('old');
  const [first, second] = await openPages(2);
  if (!first || !second) throw new Error('there are no two tabs');
  const inFirst = follow(first);
  await pass(500);
  put('a', 'b');
  await pass(500);
  const seen: string[] = [];
  const inSecond = follow(second, seen);
  await pass(500);
  expect(seen.filter((text) => text.includes('old'))).toEqual([]); // that is over
  expect([inFirst(), inSecond()]).toEqual(['live a,b', 'live a,b']);
  expect(gateway.streams.size).toBe(1);
  put('b');
  await pass(500);
  expect([inFirst(), inSecond()]).toEqual(['live b', 'live b']);
});

test('a stream that is lost is told to all, and gone on with from where it was', async () => {
  put('a');
  const all = await openPages(3);
  reachable = false;
  gateway.cutAll();
  await pass(100);
  expect(all.map(status)).toEqual(['reconnecting', 'reconnecting', 'reconnecting']);
  put('b');
  await pass(4_000);
  const asked = gateway.requests.length;
  reachable = true;
  await pass(15_000);
  expect(all.map(shown)).toEqual(['a,b', 'a,b', 'a,b']);
  expect(all.map(status)).toEqual(['live', 'live', 'live']);
  expect(gateway.requests[asked]?.lastEventId).toMatch(/^e1\.\w+-\d+$/);
  expect(gateway.streams.size).toBe(1);
});

test('a gateway that cannot be reached is told to who has just come, in all tabs, and all are live soon after it is there', async () => {
  reachable = false;
  const all = [openPage(), openPage()];
  await pass(2_000);
  expect(all.map(({ kc }) => kc.connection.getSnapshot()?.error?.reason)).toEqual(['network', 'network']);
  await pass(120_000); // long enough that each attempt is followed by a long wait
  reachable = true;
  put('a');
  await pass(31_000); // at most what one of them waits, which ends the waits of all
  expect(all.map(status)).toEqual(['live', 'live']);
  expect(gateway.streams.size).toBe(1);
});

test('a gateway that lets a stream in and says goodbye at once makes no row newer, whoever asks again', async () => {
  put('a');
  const [one, two] = (await openPages(2)) as [Page, Page];
  gateway.unavailable = true;
  const lost = Date.now();
  gateway.cutAll();
  await pass(100);
  const statuses = new Set<string>();
  for (const page of [one, two]) page.pods.subscribe(() => statuses.add(status(page)));
  for (let n = 0; n < 20; n++) {
    one.tab.run(() => one.kc.wake());
    two.tab.run(() => two.kc.wake());
    await pass(1_000);
    for (const { pods: watch } of [one, two]) expect(watch.getSnapshot().asOf).toBeLessThanOrEqual(lost);
  }
  expect([...statuses].filter((one) => one !== 'reconnecting')).toEqual([]);
  gateway.unavailable = false;
  for (const page of [one, two]) page.tab.run(() => page.kc.wake());
  await pass(36_000); // they have just been woken, so this may be the leader's whole wait
  expect([one, two].map(status)).toEqual(['live', 'live']);
});

test('a stream that has died without a word is found dead by any tab that is told to look, however recently it spoke', async () => {
  put('a');
  const all = (await openPages(3)) as [Page, Page, Page];
  for (const page of [leader(all), all[2]]) {
    put(`spoke ${gateway.requests.length}`);
    await pass(); // the stream speaks
    for (const stream of gateway.streams) stream.stop();
    const name = `missed ${gateway.requests.length}`;
    put(name);
    await pass();
    page.tab.run(() => page.kc.wake());
    await pass(2_000);
    expect(all.map((one) => shown(one).includes(name))).toEqual([true, true, true]);
    expect(all.map(status)).toEqual(['live', 'live', 'live']);
  }
});

test('what one tab may not watch is no harm to the others', async () => {
  gateway.users.set('let-me-in', { namespaces: ['n'] });
  put('a');
  const all = await openPages(2);
  const [one, two] = all as [Page, Page];
  const seen = new Set<string>();
  const phases = new Set<string | undefined>();
  for (const page of all) {
    page.tab.run(() => void page.pods.subscribe(() => seen.add(`${status(page)} ${shown(page)} ${page.pods.getSnapshot().error?.message}`)));
    page.tab.run(() => void page.kc.connection.subscribe(() => phases.add(page.kc.connection.getSnapshot()?.reason ?? page.kc.connection.getSnapshot()?.status)));
  }
  const forbidden = two.kc.watch(pods, { namespace: 'other' });
  two.tab.run(() => void forbidden.subscribe(() => undefined));
  await pass(3_000);
  expect(forbidden.getSnapshot()).toMatchObject({ status: 'denied', error: { message: 'you may not watch pods in the namespace other' } });
  expect([...seen].filter((line) => !/^(live|catching-up|reconnecting) a undefined$/.test(line))).toEqual([]);
  expect([...phases].filter((phase) => !/^(live|reconnecting)$/.test(phase ?? ''))).toEqual([]);
  put('b');
  await pass(100);
  expect([one, two].map(shown)).toEqual(['a,b', 'a,b']);
  expect([one, two].map(status)).toEqual(['live', 'live']);
});

test.each([[503, 1], [429, 3], [0, 3]])('where nobody can say who is refused (%i, %i times), no tab is, and the stream is asked again', async (code, rounds) => {
  vi.spyOn(Math, 'random').mockReturnValue(0.5); // of which waits are made
  gateway.users.set('let-me-in', { namespaces: ['n'] });
  put('a');
  const all = await openPages(2);
  const [one, two] = all as [Page, Page];
  const seen = new Set<string>();
  for (const page of all) page.tab.run(() => void page.pods.subscribe(() => seen.add(`${status(page)} ${shown(page)}`)));
  const forbidden = two.kc.watch(pods, { namespace: 'other' });
  const told = new Set<string>();
  unsure = { code, times: 2 * rounds }; // the tab that leads asks of both
  two.tab.run(() => void forbidden.subscribe(() => told.add(forbidden.getSnapshot().status)));
  await pass(1_000);
  expect(unsure.times).toBe(2 * (rounds - 1)); // it asks once, and nobody else does
  expect(all.map((page) => `${status(page)} ${shown(page)}`)).toEqual(['reconnecting a', 'reconnecting a']); // all have lost it
  await pass(60_000);
  expect([...told]).toEqual(['loading', 'denied']);
  expect(forbidden.getSnapshot().error?.message).toBe('you may not watch pods in the namespace other');
  expect([...seen].filter((line) => !/^(live|catching-up|reconnecting) a$/.test(line))).toEqual([]);
  expect([one, two].map(status)).toEqual(['live', 'live']);
  expect(gateway.streams.size).toBe(1);
});

test('watches that are refused in several tabs at once are told each in its own words', async () => {
  gateway.users.set('let-me-in', { namespaces: ['n'] });
  const all = await openPages(3);
  gateway.fault.slow(200);
  const forbidden = all.map(({ tab, kc }, n) => {
    const watch = n === 2 ? kc.follow(transitions(pods, {})) : kc.watch(pods, { namespace: `other-${n}` });
    tab.run(() => void watch.subscribe(() => undefined));
    return watch;
  });
  await pass(5_000);
  expect(forbidden.map((watch) => watch.getSnapshot().error?.message)).toEqual([
    'you may not watch pods in the namespace other-0',
    'you may not watch pods in the namespace other-1',
    'the gateway keeps no history',
  ]);
  expect(all.map(status)).toEqual(['live', 'live', 'live']);
});

test('who is signed in no more is told so, in all tabs', async () => {
  const all = await openPages(3);
  gateway.users.clear();
  gateway.cutAll();
  await pass(30_000);
  expect(all.map(status)).toEqual(['denied', 'denied', 'denied']);
});

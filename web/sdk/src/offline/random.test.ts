// Pages that are opened, closed and killed at any moment, on one disk, in virtual time; some share a stream. What they ask for changes.
// KUBECAST_STEPS=100000 for long, KUBECAST_SEED to repeat one.

import 'fake-indexeddb/auto';
import { deleteDB, openDB } from 'idb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { webcrypto } from 'node:crypto';
import { MockBrowser, type MockTab } from '../../../mock/browser.ts';
import { MockGateway } from '../../../mock/gateway.ts';
import { fetchFrom } from '../../../mock/reach.ts';
import { seededRandom } from '../../../mock/random.ts';
import { createKubecast, defineResource, page as pageOf, type Kubecast, type KubeObject, type Watch } from '../index.ts';
import { tabs } from '../tabs/index.ts';
import type { Head } from './disk.ts';
import { keepOffline, type Offline } from './index.ts';

/** Texts of few rows, so that there are several. */
vi.mock(import('./segments.ts'), async (original) => {
  const { plan } = await original();
  return { plan: (before, rows) => plan(before, rows, 4) };
});

const steps = Number(process.env.KUBECAST_STEPS ?? 1_000);
const seed = Number(process.env.KUBECAST_SEED ?? 5);
/** What says that it is live may be so old, in milliseconds. */
const oldest = 45_000;
/** By how much what is not live may be older than it says, in milliseconds. */
const dated = 1_000;

const resources = ['pods', 'jobs', 'services'] as const;
const kinds = resources.map((plural) => defineResource<KubeObject>()({ group: plural === 'jobs' ? 'batch' : '', version: 'v1', plural }));
const namespaces = ['n0', 'n1', 'n2'];
const colours = ['red', 'blue'];
/** As a token says it: tabs share a stream with tabs of the same user only. */
const tokenOf = (sub: string): string => `e30.${Buffer.from(JSON.stringify({ sub })).toString('base64url')}.e30`;

interface View {
  readonly resource: string;
  /** What is asked for: objects of a colour, or all. */
  colour: string | undefined;
  watch: Watch<KubeObject>;
  /** Undefined: nobody looks at it, for now. */
  leave: (() => void) | undefined;
}

interface Page {
  readonly tab: MockTab;
  readonly user: string;
  readonly kc: Kubecast;
  readonly offline: Offline;
  readonly views: readonly View[];
}

const real = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };
let browser: MockBrowser;
let gateway: MockGateway;
const pages: Page[] = [];
/** Under way at present, of any page. */
const transactions = new Set<IDBTransaction>();

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  MockBrowser.ownTimers();
  vi.spyOn(webcrypto.subtle, 'digest').mockImplementation((_, data) => Promise.resolve(new Uint8Array(data as Uint8Array).slice(0, 32).buffer));
  browser = new MockBrowser();
  gateway = new MockGateway();
  // eslint-disable-next-line @typescript-eslint/unbound-method -- called on each database
  const begin = IDBDatabase.prototype.transaction;
  vi.spyOn(IDBDatabase.prototype, 'transaction').mockImplementation(function (this: IDBDatabase, ...args) {
    const transaction = begin.apply(this, args);
    transactions.add(transaction);
    for (const end of ['complete', 'abort']) transaction.addEventListener(end, () => transactions.delete(transaction));
    return transaction;
  });
});
afterEach(async () => {
  for (const { tab, kc, offline } of pages.splice(0)) {
    offline.close();
    kc.close();
    tab.kill();
  }
  gateway.cutAll();
  vi.useRealTimers();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
  Object.assign(globalThis, real);
  await deleteDB('kubecast');
});

test(`${steps} random steps: whatever is killed and when, what is shown is what the gateway had then, and ends as what it has`, { timeout: 3_600_000 }, async () => {
  const random = seededRandom(seed);
  const chosen = seededRandom(seed + 1);
  vi.spyOn(Math, 'random').mockImplementation(chosen);
  vi.spyOn(globalThis.crypto, 'getRandomValues').mockImplementation((into) => (into as Uint32Array).map(() => Math.floor(chosen() * 2 ** 32)));
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
  const soon = async <T>(what: Promise<T>): Promise<T> => {
    let done = false;
    const settled = what.finally(() => (done = true));
    settled.catch(() => undefined);
    while (!done) await pass(1);
    return settled;
  };
  /** What each user may see. Rita never sees what is in n0. */
  const allowed = new Map<string, readonly string[] | undefined>([['mara', undefined], ['rita', ['n1', 'n2']]]);
  /** When each object was last changed for a user, by user, resource and uid; what it is now, and where. */
  const changed = new Map<string, { at: number; version: string | undefined; readonly namespace: string; readonly colour: string }>();
  const visible = (user: string, namespace: string): boolean => allowed.get(user)?.includes(namespace) ?? true;
  const permit = (user: string, to: readonly string[] | undefined): void => {
    const before = allowed.get(user);
    for (const [key, object] of changed) {
      if (key.startsWith(user) && (before?.includes(object.namespace) ?? true) !== (to?.includes(object.namespace) ?? true)) object.at = Date.now();
    }
    allowed.set(user, to);
    const seen = { ...(to && { namespaces: to }) };
    // On the streams that are open, or on those that come.
    gateway.users.set(tokenOf(user), seen);
    if (random() < 0.5) gateway.cutAll();
    else gateway.permit(tokenOf(user), seen);
  };
  for (const [user, to] of allowed) permit(user, to);

  const watch = (kc: Kubecast, resource: string, colour: string | undefined): Watch<KubeObject> => {
    const kind = kinds.find(({ plural }) => plural === resource);
    if (!kind) throw new Error(resource);
    const which = colour === undefined ? {} : { labels: `colour=${colour}` };
    return resource === 'services' && random() < 0.5 ? kc.follow(pageOf(kind, { limit: 500, ...which })) : kc.watch(kind, which);
  };
  const open = async (user: string): Promise<void> => {
    const tab = browser.open();
    let opening: Promise<void> | undefined;
    tab.run(() => {
      const fetch = fetchFrom(() => gateway, tab);
      const share = random() < 0.5 && { share: tabs({ surroundings: tab }) };
      const schedule = random() < 0.5 && { schedule: (flush: () => void) => flush() };
      const kc = createKubecast({ gateway: 'http://gateway', token: () => tokenOf(user), fetch, random: chosen, linger: 500, ...share, ...schedule });
      opening = keepOffline(kc, { user, every: pick([2_000, 20_000]) }).then((offline) => {
        const views = resources.map((resource): View => {
          const colour = resource === 'pods' ? undefined : pick([undefined, ...colours]);
          const of = watch(kc, resource, colour);
          return { resource, colour, watch: of, leave: resource === 'pods' || random() < 0.6 ? of.subscribe(() => undefined) : undefined };
        });
        pages.push({ tab, user, kc, offline, views });
      });
    });
    if (opening) await soon(opening);
  };
  const close = (page: Page): void => {
    pages.splice(pages.indexOf(page), 1);
    page.tab.run(() => {
      page.offline.close();
      page.kc.close();
    });
    page.tab.kill();
  };
  const change = (): void => {
    const resource = pick(resources);
    const namespace = pick(namespaces);
    const name = `o${below(12)}`;
    const colour = pick(colours);
    const uid = gateway.cluster.list(resource).find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)?.metadata.uid;
    let told: { uid: string; version: string | undefined };
    if (uid !== undefined && random() < 0.4) {
      gateway.cluster.remove(resource, uid);
      told = { uid, version: undefined };
    } else {
      const { metadata } = gateway.cluster.put(resource, { metadata: { name, namespace, uid: uid ?? `${name}-${gateway.cluster.version}`, labels: { colour } } });
      told = { uid: metadata.uid, version: metadata.resourceVersion };
    }
    for (const user of allowed.keys()) changed.set(`${user} ${resource} ${told.uid}`, { at: Date.now(), version: told.version, namespace, colour });
  };
  const check = (settled: boolean): void => {
    for (const { user, views } of pages) {
      for (const { resource, colour, watch: of, leave } of views) {
        if (!leave) continue;
        const { status, data, asOf } = of.getSnapshot();
        if (settled) expect(`${resource} ${status}`).toBe(`${resource} live`);
        if (colour !== undefined) expect(data.filter(({ metadata }) => metadata.labels?.['colour'] !== colour)).toEqual([]);
        if (user === 'rita') expect(data.filter(({ metadata }) => metadata.namespace === 'n0')).toEqual([]);
        const has = new Map(data.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]));
        const known = status === 'live' ? Date.now() - (settled ? 0 : oldest) : asOf === undefined ? -Infinity : asOf - dated;
        for (const [key, { at, version: now, namespace, colour: is }] of changed) {
          const [whose, kind, uid = ''] = key.split(' ');
          if (whose !== user || kind !== resource || at > known) continue;
          const version = visible(user, namespace) && (colour ?? is) === is ? now : undefined;
          if (has.get(uid) !== version) throw new Error(`${key} is ${has.get(uid) ?? 'not there'} and not ${version ?? 'gone'}; ${status} as of ${asOf === undefined ? 'now' : Date.now() - asOf} ms ago`);
        }
        if (settled) expect(has.size).toBe(gateway.cluster.list(resource).filter(({ metadata }) => visible(user, metadata.namespace ?? '') && (colour === undefined || metadata.labels?.['colour'] === colour)).length);
      }
    }
  };
  const onDisk = async (): Promise<{ heads: Map<string, Head>; texts: Map<string, string> }> => {
    const db = await soon(openDB('kubecast'));
    const tx = db.transaction(['heads', 'rows']);
    tx.done.catch(() => undefined); // it may be under way, with all that was asked of it answered, as all that is under way is aborted
    const [heads, rows] = [tx.objectStore('heads'), tx.objectStore('rows')];
    const [users, found, places, texts] = await soon(Promise.all([heads.getAllKeys(), heads.getAll(), rows.getAllKeys(), rows.getAll()]));
    db.close();
    return { heads: new Map(users.map((key, n) => [String((key as string[])[1]), found[n] as Head])), texts: new Map(places.map((key, n) => [JSON.stringify(key), texts[n] as string])) };
  };
  const placeOf = (user: string, path: string, n: number): string => JSON.stringify(['http://gateway', user, path, n]);

  /** What this test has taken from the disk. */
  const lost = new Set<string>();
  /** The texts are those that the heads name, and of these, and a gateway knows the position. */
  const checkTexts = async (): Promise<void> => {
    const { heads, texts } = await onDisk();
    for (const [user, { position, watches }] of heads) {
      expect(position).not.toMatch(/^~[^~]*$/);
      for (const { path, segments } of watches) {
        for (const [n, length] of segments) {
          const place = placeOf(user, path, n);
          const text = texts.get(place);
          if (text !== undefined || !lost.has(place)) expect(`${place} ${text?.length}`).toBe(`${place} ${length}`);
          texts.delete(place);
        }
      }
    }
    expect([...texts.keys()]).toEqual([]);
  };

  /** Somebody writes: what is on disk is what a page shows, in its order, and is not left to grow old. */
  const checkDisk = async (): Promise<void> => {
    const keeping = pages.filter(({ offline }) => offline.end === undefined);
    const user = keeping[0]?.user;
    if (user === undefined) return;
    await soon(Promise.all(keeping.map(({ offline }) => offline.save())));
    await checkTexts();
    const { heads, texts } = await onDisk();
    const { watches = [] } = heads.get(user) ?? {};
    expect(Date.now() - Math.max(0, ...watches.map(({ asOf }) => asOf))).toBeLessThan(90_000);
    for (const { path, name, objects, segments } of watches) {
      const rows = segments.flatMap(([n]) => JSON.parse(texts.get(placeOf(user, path, n)) ?? '[]') as KubeObject[]);
      if (name === undefined || !objects || segments.some(([n]) => lost.has(placeOf(user, path, n)))) continue;
      const shown = keeping.map(({ kc }) => kc.inside.entries.get(path)?.collection.getSnapshot().items);
      expect(shown.map((items) => JSON.stringify(items))).toContain(JSON.stringify(rows));
    }
  };
  /** As soon as a page has heard what its user may see, nothing else is on disk. */
  const checkSeen = async (): Promise<void> => {
    // While nobody has a stream, a tab whose leader was killed has not noticed yet: it is live, and nobody has told it anything.
    const isLive = ({ offline, views }: Page): boolean => gateway.streams.size > 0 && offline.end === undefined && views[0]?.watch.getSnapshot().status === 'live';
    await pass(50);
    for (let n = 0; n < 40 && !pages.some(isLive); n++) await pass(50);
    const user = pages.find(isLive)?.user;
    if (user === undefined) return;
    await pass(50);
    const { texts } = await onDisk();
    for (const namespace of namespaces) if (!visible(user, namespace)) expect([...texts.values()].join()).not.toContain(`"namespace":"${namespace}"`);
  };
  /** One page is left, which has not written last, it may be. */
  const leaveOne = async (): Promise<void> => {
    const keeping = pages.filter(({ offline }) => offline.end === undefined);
    if (keeping.length < 2) return;
    const stays = pick(keeping);
    for (const page of [...pages]) if (page !== stays) close(page);
    await pass(100_000);
    await checkDisk();
  };

  let fromDisk = 0;
  let killed = 0;
  await open('mara');
  for (let step = 1; step <= steps; step++) {
    for (let n = below(3); n > 0; n--) change();
    const page = pages.length > 0 ? pick(pages) : undefined;
    switch (below(24)) {
      case 0:
      case 1:
        if (page) close(page);
        break;
      case 2:
        // In the middle of what it writes.
        if (page) void page.offline.save();
        await pass(below(4));
        killed += transactions.size;
        for (const transaction of transactions) transaction.abort();
        if (page) close(page);
        break;
      case 3:
      case 4:
      case 5: {
        if (pages.length > 2) break;
        await open(pages[0]?.user ?? (random() < 0.9 ? 'mara' : 'rita'));
        check(false); // also of what nobody has told yet
        if (pages.at(-1)?.views.some((view) => view.watch.getSnapshot().data.length > 0)) fromDisk++;
        break;
      }
      case 6:
        gateway.cutAll();
        break;
      case 7:
        if (random() < 0.5) gateway.cluster.compact();
        break;
      case 8:
        if (random() < 0.2) gateway.epoch = `e${step}`;
        break;
      case 9:
        gateway.away = random() < 0.3;
        if (gateway.away) gateway.cutAll();
        break;
      case 10:
        gateway.away = false;
        break;
      case 11:
        if (random() < 0.3) {
          permit('mara', random() < 0.5 ? undefined : namespaces.filter(() => random() < 0.7).concat('n1'));
          await checkSeen();
        }
        break;
      case 12:
        if (page) {
          const view = pick(page.views);
          if (view.resource === 'pods') break;
          page.tab.run(() => {
            view.leave?.();
            view.leave = view.leave ? undefined : view.watch.subscribe(() => undefined);
          });
        }
        break;
      case 13:
        if (page && random() < 0.3) {
          await soon(page.offline.clear());
          const { heads, texts } = await onDisk();
          expect([...heads.keys(), ...texts.keys()].join()).not.toMatch(page.user);
          close(page);
        }
        break;
      case 14:
        if (random() < 0.2) {
          // The disk has lost something.
          const db = await soon(openDB('kubecast'));
          const keys = await soon(db.getAllKeys('rows'));
          if (keys.length > 0) {
            const key = pick(keys);
            lost.add(JSON.stringify(key));
            await soon(db.delete('rows', key));
          }
          db.close();
        }
        break;
      case 15:
        gateway.sabotage = (text) => (random() < 0.02 ? below(text.length) : undefined);
        break;
      case 16:
        gateway.sabotage = undefined;
        break;
      case 18:
      case 19:
        if (page) {
          // Something else is asked for in its place.
          const view = pick(page.views);
          if (view.resource === 'pods') break;
          page.tab.run(() => {
            const before = view.leave;
            view.watch = watch(page.kc, view.resource, (view.colour = pick([undefined, ...colours])));
            view.leave = view.watch.subscribe(() => undefined);
            before?.();
          });
        }
        break;
      case 17:
        // At once, of which one may write, or each, where nobody looks at them.
        if (random() < 0.5) vi.stubGlobal('document', { visibilityState: 'hidden' });
        await soon(Promise.all(pages.filter(() => random() < 0.7).map(({ offline }) => offline.save())));
        vi.unstubAllGlobals();
        await checkTexts();
        break;
    }
    await pass(below(20) === 0 ? below(40_000) : below(800));
    try {
      check(false);
      if (step % 100 === 0 || step === steps) {
        gateway.away = false;
        gateway.sabotage = undefined;
        if (pages.length === 0) await open('mara');
        for (const { tab, views } of pages) tab.run(() => views.forEach((view) => view.watch.retry()));
        await pass(100_000);
        check(true);
        await checkDisk();
        await checkSeen();
        if (random() < 0.5) await leaveOne();
        for (const [key, { version }] of changed) if (version === undefined) changed.delete(key);
        gateway.requests.length = 0;
        expect(transactions.size).toBeLessThanOrEqual(pages.length); // which write just now
        expect(vi.getTimerCount()).toBeLessThan(40 * (pages.length + 1));
      }
    } catch (error) {
      throw new Error(`step ${step}, seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
  expect(fromDisk).toBeGreaterThan(steps / 100);
  expect(killed).toBeGreaterThan(steps / 200);
});

// Pages that are opened, closed and killed at any moment, on one disk, in virtual time. KUBECAST_STEPS=100000 for long, KUBECAST_SEED to repeat one.

import 'fake-indexeddb/auto';
import { deleteDB, openDB } from 'idb';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MockGateway } from '../../../mock/gateway.ts';
import { seededRandom } from '../../../mock/random.ts';
import { createKubecast, defineResource, type Kubecast, type KubeObject, type Watch } from '../index.ts';
import { keepOffline, type Offline } from './index.ts';

const steps = Number(process.env.KUBECAST_STEPS ?? 1_000);
const seed = Number(process.env.KUBECAST_SEED ?? 5);
/** What says that it is live may be so old, in milliseconds. */
const oldest = 45_000;
/** By how much what is not live may be older than it says, in milliseconds. */
const dated = 1_000;

const resources = ['pods', 'jobs', 'services'] as const;
const kinds = resources.map((plural) => defineResource<KubeObject>()({ group: plural === 'jobs' ? 'batch' : '', version: 'v1', plural }));
const namespaces = ['n0', 'n1', 'n2'];

interface Page {
  readonly user: string;
  readonly kc: Kubecast;
  readonly offline: Offline;
  readonly views: { readonly resource: string; readonly watch: Watch<KubeObject>; leave: (() => void) | undefined }[];
}

let gateway: MockGateway;
const pages: Page[] = [];
/** Under way at present, of any page. */
const transactions = new Set<IDBTransaction>();

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
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
  for (const { kc, offline } of pages.splice(0)) {
    offline.close();
    kc.close();
  }
  gateway.cutAll();
  vi.useRealTimers();
  vi.restoreAllMocks();
  await deleteDB('kubecast');
});

test(`${steps} random steps: whatever is killed and when, what is shown is what the gateway had then, and ends as what it has`, { timeout: 3_600_000 }, async () => {
  const random = seededRandom(seed);
  const chosen = seededRandom(seed + 1);
  vi.spyOn(Math, 'random').mockImplementation(chosen);
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
  const changed = new Map<string, { at: number; version: string | undefined; readonly namespace: string }>();
  const visible = (user: string, namespace: string): boolean => allowed.get(user)?.includes(namespace) ?? true;
  const permit = (user: string, to: readonly string[] | undefined): void => {
    const before = allowed.get(user);
    for (const [key, object] of changed) {
      if (key.startsWith(user) && (before?.includes(object.namespace) ?? true) !== (to?.includes(object.namespace) ?? true)) object.at = Date.now();
    }
    allowed.set(user, to);
    gateway.users.set(user, { ...(to && { namespaces: to }) });
    gateway.cutAll();
  };
  for (const [user, to] of allowed) permit(user, to);

  const open = async (user: string): Promise<void> => {
    const kc = createKubecast({ token: () => user, fetch: gateway.fetch, random: chosen, linger: 500 });
    const opening = keepOffline(kc, { user, every: 2_000 });
    const offline = await soon(opening);
    const views = kinds.map((kind) => {
      const watch = kc.watch(kind);
      return { resource: kind.plural, watch, leave: kind.plural === 'pods' || random() < 0.6 ? watch.subscribe(() => undefined) : undefined };
    });
    pages.push({ user, kc, offline, views });
  };
  const close = (page: Page): void => {
    pages.splice(pages.indexOf(page), 1);
    page.offline.close();
    page.kc.close();
  };
  const change = (): void => {
    const resource = pick(resources);
    const namespace = pick(namespaces);
    const name = `o${below(12)}`;
    const uid = gateway.cluster.list(resource).find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)?.metadata.uid;
    let told: { uid: string; version: string | undefined };
    if (uid !== undefined && random() < 0.4) {
      gateway.cluster.remove(resource, uid);
      told = { uid, version: undefined };
    } else {
      const { metadata } = gateway.cluster.put(resource, { metadata: { name, namespace, uid: uid ?? `${name}-${gateway.cluster.version}` } });
      told = { uid: metadata.uid, version: metadata.resourceVersion };
    }
    for (const user of allowed.keys()) changed.set(`${user} ${resource} ${told.uid}`, { at: Date.now(), version: told.version, namespace });
  };
  const check = (settled: boolean): void => {
    for (const { user, views } of pages) {
      for (const { resource, watch, leave } of views) {
        if (!leave) continue;
        const { status, data, asOf } = watch.getSnapshot();
        if (settled) expect(`${resource} ${status}`).toBe(`${resource} live`);
        if (user === 'rita') expect(data.filter(({ metadata }) => metadata.namespace === 'n0')).toEqual([]);
        const has = new Map(data.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]));
        const known = status === 'live' ? Date.now() - (settled ? 0 : oldest) : asOf === undefined ? -Infinity : asOf - dated;
        for (const [key, { at, version: now, namespace }] of changed) {
          const [whose, kind, uid = ''] = key.split(' ');
          if (whose !== user || kind !== resource || at > known) continue;
          const version = visible(user, namespace) ? now : undefined;
          if (has.get(uid) !== version) throw new Error(`${key} is ${has.get(uid) ?? 'not there'} and not ${version ?? 'gone'}; ${status} as of ${asOf === undefined ? 'now' : Date.now() - asOf} ms ago`);
        }
        if (settled) expect(has.size).toBe(gateway.cluster.list(resource).filter(({ metadata }) => visible(user, metadata.namespace ?? '')).length);
      }
    }
  };
  const onDisk = async (): Promise<string> => {
    const db = await soon(openDB('kubecast'));
    const rows = await soon(Promise.all([db.getAll('rows'), db.getAllKeys('heads')]));
    db.close();
    return JSON.stringify(rows);
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
        if (pages.at(-1)?.views.some(({ watch }) => watch.getSnapshot().data.length > 0)) fromDisk++;
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
        if (random() < 0.3) permit('mara', random() < 0.5 ? undefined : namespaces.filter(() => random() < 0.7).concat('n1'));
        break;
      case 12:
        if (page) {
          const view = pick(page.views);
          if (view.resource === 'pods') break;
          view.leave?.();
          view.leave = view.leave ? undefined : view.watch.subscribe(() => undefined);
        }
        break;
      case 13:
        if (page && random() < 0.3) {
          await soon(page.offline.clear());
          expect(await onDisk()).not.toContain(`"${page.user}"`);
          close(page);
        }
        break;
      case 14:
        if (random() < 0.2) {
          // The disk has lost something.
          const db = await soon(openDB('kubecast'));
          const keys = await soon(db.getAllKeys('rows'));
          if (keys.length > 0) await soon(db.delete('rows', pick(keys)));
          db.close();
        }
        break;
      case 15:
        gateway.sabotage = (text) => (random() < 0.02 ? below(text.length) : undefined);
        break;
      case 16:
        gateway.sabotage = undefined;
        break;
      case 17:
        if (page) await soon(page.offline.save());
        break;
    }
    await pass(below(20) === 0 ? below(40_000) : below(800));
    try {
      check(false);
      if (step % 100 === 0 || step === steps) {
        gateway.away = false;
        gateway.sabotage = undefined;
        if (pages.length === 0) await open('mara');
        for (const { views } of pages) for (const { watch } of views) watch.retry();
        await pass(100_000);
        check(true);
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
  expect(killed).toBeGreaterThan(steps / 100);
});

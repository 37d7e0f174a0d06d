// Tabs against a gateway while everything fails that can, in virtual time. KUBECAST_STEPS=100000 for long, KUBECAST_SEED to repeat one.

import { webcrypto } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MockBrowser, type MockTab } from '../../../mock/browser.ts';
import { MockGateway } from '../../../mock/gateway.ts';
import { fetchFrom } from '../../../mock/reach.ts';
import { seededRandom } from '../../../mock/random.ts';
import { createKubecast, defineResource, type Kubecast, type KubeObject, type Watch } from '../index.ts';
import { tabs } from './index.ts';

const steps = Number(process.env.KUBECAST_STEPS ?? 2_000);
const seed = Number(process.env.KUBECAST_SEED ?? 7);
/** What says that it is live may be so old, in milliseconds: a dead connection is found out by its silence, which is 2.5 heartbeats. */
const oldest = 45_000;
/** By how much what is not live may be older than it says, in milliseconds: a page that stood still for five seconds or less does not notice. */
const dated = 6_000;
/** How long after it was frozen a page may say what it said before, in milliseconds. */
const waking = 2_500;

const real = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };
let browser: MockBrowser;
let gateway: MockGateway;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  MockBrowser.ownTimers();
  vi.spyOn(webcrypto.subtle, 'digest').mockImplementation((_, data) => Promise.resolve(new Uint8Array(data as Uint8Array).slice(0, 32).buffer));
  browser = new MockBrowser();
  gateway = new MockGateway();
});

afterEach(() => {
  for (const tab of [...browser.tabs]) tab.kill();
  gateway.cutAll();
  vi.restoreAllMocks();
  vi.useRealTimers();
  Object.assign(globalThis, real);
});

interface Page {
  readonly tab: MockTab;
  readonly kc: Kubecast;
  readonly views: { readonly resource: string; readonly watch: Watch<KubeObject>; leave: (() => void) | undefined }[];
}

test(`${steps} steps: no divergence, nothing old is live, nothing grows`, async () => {
  const random = seededRandom(seed);
  const pick = <T>(from: readonly T[]): T => from[Math.floor(random() * from.length)] as T;
  // All that is chosen by chance is chosen by the seed: names of tabs and leaders, and waits before the next attempt.
  const chosen = seededRandom(seed + 1);
  vi.spyOn(globalThis.crypto, 'getRandomValues').mockImplementation((into) => (into as Uint32Array).map(() => Math.floor(chosen() * 2 ** 32)));
  const below = (n: number): number => Math.floor(random() * n);
  browser.delay = () => 1 + below(20);
  let reachable = true;
  const tokenOf = (exp: number): string => `e30.${Buffer.from(JSON.stringify({ sub: 'mara', exp })).toString('base64url')}.e30`;
  let token = tokenOf(0);
  /** Of all pages, at present; undefined: every one. */
  let allowed: readonly string[] | undefined;
  gateway.users.set(token, {});
  /** When each object was last changed for those who watch, by resource and uid; what it is now, and where. */
  const changed = new Map<string, { at: number; version: string | undefined; readonly namespace: string }>();
  const pages: Page[] = [];
  const kinds = ['pods', 'jobs', 'services'];
  const namespaces = ['n0', 'n1', 'n2'];
  const visible = (namespace: string, to: readonly string[] | undefined): boolean => to?.includes(namespace) ?? true;
  const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);

  const open = (): void => {
    const tab = browser.open();
    tab.run(() => {
      const fetch = fetchFrom(() => (reachable ? gateway : undefined), tab);
      const kc = createKubecast({ gateway: 'http://gateway', token: () => token, fetch, random: chosen, share: tabs({ surroundings: tab }), schedule: (flush) => flush(), linger: 500 });
      const views = kinds.map((resource) => {
        const watch = kc.watch(defineResource()({ group: resource === 'jobs' ? 'batch' : '', version: 'v1', plural: resource }));
        return { resource, watch, leave: random() < 0.6 || resource === 'pods' ? watch.subscribe(() => undefined) : undefined };
      });
      pages.push({ tab, kc, views });
    });
  };
  const close = (page: Page): void => {
    pages.splice(pages.indexOf(page), 1);
    page.tab.kill();
  };
  const change = (): void => {
    const resource = pick(kinds);
    const name = `o${below(12)}`;
    const namespace = pick(namespaces);
    const uid = gateway.cluster.list(resource).find(({ metadata }) => metadata.name === name && metadata.namespace === namespace)?.metadata.uid;
    if (uid !== undefined && random() < 0.4) {
      gateway.cluster.remove(resource, uid);
      changed.set(`${resource} ${uid}`, { at: performance.now(), version: undefined, namespace });
    } else {
      const { metadata } = gateway.cluster.put(resource, { metadata: { name, namespace, uid: uid ?? `${name}-${gateway.cluster.version}` } });
      changed.set(`${resource} ${metadata.uid}`, { at: performance.now(), version: metadata.resourceVersion, namespace });
    }
  };
  /** Permissions change, of streams that are open at once. */
  const allow = (to: readonly string[] | undefined): void => {
    for (const object of changed.values()) if (visible(object.namespace, allowed) !== visible(object.namespace, to)) object.at = performance.now();
    allowed = to;
    gateway.users.set(token, { ...(to && { namespaces: to }) });
    for (const stream of [...gateway.streams]) stream.see(to);
  };
  const check = (settled: boolean): void => {
    for (const { views, tab } of pages) {
      // Nobody sees a page that is frozen. One that was has as long as the client's patience to find out what has become of it.
      if (tab.frozen || (!settled && performance.now() - tab.woken < waking)) continue;
      for (const { resource, watch, leave } of views) {
        if (!leave) continue;
        const { status, data, asOf } = watch.getSnapshot();
        if (settled) expect(status).toBe('live');
        // What is live has all that happened, and what is not says up to when.
        const known = status === 'live' ? performance.now() : asOf === undefined ? -Infinity : performance.now() - (Date.now() - asOf);
        const slack = settled ? 0 : status === 'live' ? oldest : dated;
        const has = new Map(data.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]));
        for (const [key, { at, version: now, namespace }] of changed) {
          const [kind, uid = ''] = key.split(' ');
          const version = visible(namespace, allowed) ? now : undefined;
          if (kind !== resource || at > known - slack) continue;
          if (has.get(uid) !== version) throw new Error(`${key} is ${has.get(uid) ?? 'not there'} and not ${version ?? 'gone'}, ${performance.now() - at} ms after it changed; ${status} as of ${asOf === undefined ? 'now' : Date.now() - asOf} ms ago`);
        }
      }
    }
  };

  const heal = async (): Promise<void> => {
    reachable = true;
    gateway.sabotage = undefined;
    gateway.refuseWith = undefined;
    if (allowed?.length === 0) allow(['n0']);
    for (const { tab } of pages) if (tab.frozen) tab.thaw(true);
    for (const { tab } of pages) tab.hide(false);
    for (const { tab, views } of pages) tab.run(() => views.forEach(({ watch }) => watch.retry()));
    await pass(100_000);
  };

  for (let n = 0; n < 4; n++) open();
  await pass(500);
  for (let step = 1; step <= steps; step++) {
    for (let n = below(3); n > 0; n--) change();
    switch (below(40)) {
      case 0:
        gateway.cutAll();
        break;
      case 1:
        for (const stream of gateway.streams) if (random() < 0.2) stream.stop(); // half-open
        break;
      case 2:
        if (pages.length > 1) close(pick(pages));
        break;
      case 3:
        if (pages.length < 7) open();
        break;
      case 4:
        if (random() < 0.5) pick(pages).tab.freeze(random() < 0.5);
        break;
      case 5:
      case 6: {
        const { tab } = pick(pages);
        if (tab.frozen) tab.thaw(random() < 0.5);
        break;
      }
      case 7: {
        const { tab } = pick(pages);
        if (!tab.frozen) tab.hide(random() < 0.4);
        break;
      }
      case 8:
        gateway.cluster.compact();
        break;
      case 9:
        if (random() < 0.3) gateway.epoch = `e${step}`;
        break;
      case 10:
        if (random() < 0.3) reachable = false;
        break;
      case 11:
      case 12:
        reachable = true;
        break;
      case 13:
        gateway.sabotage = (text) => (random() < 0.02 ? below(text.length) : undefined);
        break;
      case 14:
        gateway.sabotage = undefined;
        break;
      case 15:
        for (const stream of gateway.streams) stream.goodbye(pick(['drain', 'age', 'expired', 'unavailable']));
        break;
      case 16: {
        // A token ends, and there is a newer one.
        gateway.users.delete(token);
        token = tokenOf(step);
        allow(allowed);
        break;
      }
      case 22:
        allow(random() < 0.3 ? undefined : namespaces.filter(() => random() < 0.6));
        break;
      case 17:
      case 18: {
        const page = pick(pages);
        const view = pick(page.views);
        if (page.tab.frozen || view.resource === 'pods') break;
        page.tab.run(() => {
          if (view.leave) view.leave();
          view.leave = view.leave ? undefined : view.watch.subscribe(() => undefined);
        });
        break;
      }
      case 19: {
        const page = pick(pages);
        page.tab.run(() => page.kc.wake());
        break;
      }
      case 20: {
        const stream = pick([...gateway.streams]);
        const watch = stream && pick([...stream.watches]);
        if (watch) stream.reset(watch, 'slow');
        break;
      }
      case 21: {
        const page = pick(pages);
        page.tab.run(() => page.kc.pause());
        await pass(below(3_000));
        page.tab.run(() => page.kc.resume());
        break;
      }
      case 23: {
        // Away for long, and back for as long as it takes to tell a part of what was missed.
        reachable = false;
        gateway.cutAll();
        for (let n = below(10); n > 0; n--) change();
        await pass(10_000 + below(20_000));
        let left = below(12);
        gateway.sabotage = () => (left-- > 0 ? undefined : 0);
        reachable = true;
        break;
      }
    }
    await pass(below(20) === 0 ? below(20_000) : below(300));
    try {
      check(false);
      if (step % 200 === 0 || step === steps) {
        await heal();
        check(true);
        for (const [key, { version }] of changed) if (version === undefined) changed.delete(key);
        gateway.requests.length = 0;
        expect(new Set([...gateway.streams].map((stream) => stream.watches.map(({ resource }) => resource).join())).size).toBeLessThanOrEqual(1);
        expect(gateway.streams.size).toBe(1);
        expect(browser.channels.size).toBe(2 * pages.length);
        // Of each tab its own, and its wish to lead; of the leader, its wait for each of the others.
        expect([...browser.locks.values()].flat().length).toBeLessThanOrEqual(3 * pages.length);
        expect(vi.getTimerCount()).toBeLessThan(60 * (pages.length + 1));
      }
    } catch (error) {
      throw new Error(`step ${step}, seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
}, 3_600_000);

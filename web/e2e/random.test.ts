// The SDK against the real gateway while all fails by chance that can: connections, silence on the line, the gateway, its cluster, tokens,
// permissions, tabs. KUBECAST_SECONDS=600 for long, KUBECAST_SEED for other chances.

import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createKubecast, defineResource, type Kubecast, type KubeObject, type Watch } from '@kubecast/sdk';
import { tabs } from '@kubecast/sdk/tabs';
import { MockBrowser, type MockTab } from '../mock/browser.ts';
import { seededRandom } from '../mock/random.ts';
import { Front } from './support/front.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast as Gateway } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const seconds = Number(process.env.KUBECAST_SECONDS ?? 40);
const seed = Number(process.env.KUBECAST_SEED ?? 3);
/** What says that it is live may be so old, in milliseconds: a dead connection is found out by its silence, which is 2.5 heartbeats of 5 s. */
const oldest = 20_000;
const always = 'team-vision';
const sometimes = ['team-nlp', 'team-speech'];

const configMaps = defineResource<KubeObject & { readonly data?: { readonly n: string } }>()({ version: 'v1', plural: 'configmaps' });

interface Page {
  /** Undefined: it shares with nobody. */
  readonly tab: MockTab | undefined;
  readonly kc: Kubecast;
  readonly watches: readonly Watch<KubeObject>[];
}

describe.skipIf(lacking !== undefined)(`whatever happens${lacking ? ` (${lacking})` : ''}`, () => {
  let gateway: Gateway;
  let front: Front;

  const real = { setTimeout: globalThis.setTimeout, setInterval: globalThis.setInterval };

  beforeAll(async () => {
    gateway = await Gateway.start();
    front = await Front.of(gateway.url, '');
    MockBrowser.ownTimers(); // those of a tab end with it
  });
  afterAll(async () => {
    Object.assign(globalThis, real);
    await Promise.allSettled([front?.stop(), gateway?.stop()]);
  });

  test(`${seconds} seconds: nothing old is live, and all ends as the cluster has it`, { timeout: (seconds + 240) * 1_000 }, async () => {
    const random = seededRandom(seed);
    const below = (n: number): number => Math.floor(random() * n);
    const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
    const browser = new MockBrowser();
    const pages: Page[] = [];
    const allowed = new Set<string>([always]);
    /** When each object was last changed for those who watch, by uid; what it is now, and where. */
    const changed = new Map<string, { at: number; version: string | undefined; readonly namespace: string }>();
    const names = new Map<string, string>();

    // All pages have one token, as tabs of one user have.
    let token = '';
    let ends = 0;
    let asking: Promise<string> | undefined;
    const tokenOf = async (reason: string): Promise<string> => {
      if (reason === 'connect' && Date.now() < ends) return token;
      asking ??= gateway.token('rita', [always], '12s').finally(() => (asking = undefined));
      token = await asking;
      ends = Date.now() + 10_000;
      return token;
    };

    const open = (shared: boolean): void => {
      const tab = shared ? browser.open() : undefined;
      const make = (): void => {
        // What a tab has asked for ends with it. (AbortSignal.any of Node 20 forgets its sources while they are in use.)
        const reach: typeof fetch = (input, init) => {
          const ended = new AbortController();
          for (const signal of [tab?.gone, init?.signal]) signal?.addEventListener('abort', () => ended.abort(signal.reason), { signal: ended.signal });
          if (init?.signal?.aborted) ended.abort(init.signal.reason);
          return fetch(input, { ...init, signal: ended.signal });
        };
        const kc = createKubecast({ gateway: front.url, token: tokenOf, fetch: reach, heartbeat: 5_000, linger: 500, ...(tab && { share: tabs({ surroundings: tab }) }) });
        const labels = 'of=random';
        const watches = [kc.watch(configMaps, { labels }), kc.watch(configMaps, { labels, fields: ['data.n'], deltas: true })];
        for (const watch of watches) watch.subscribe(() => undefined);
        pages.push({ tab, kc, watches });
      };
      if (tab) tab.run(make);
      else make();
    };
    const close = (page: Page): void => {
      pages.splice(pages.indexOf(page), 1);
      page.tab?.kill(); // without a word
      if (!page.tab) page.kc.close();
    };

    const change = async (): Promise<void> => {
      const namespace = pick([always, ...sometimes]);
      const name = `random-${below(8)}`;
      const path = `/api/v1/namespaces/${namespace}/configmaps`;
      const uid = names.get(`${namespace}/${name}`);
      const object = { apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { of: 'random' } }, data: { n: String(below(1_000_000)) } };
      if (uid === undefined) {
        const { metadata } = (await gateway.api('POST', path, object)) as KubeObject;
        names.set(`${namespace}/${name}`, metadata.uid);
        changed.set(metadata.uid, { at: performance.now(), version: metadata.resourceVersion, namespace });
      } else if (random() < 0.3) {
        await gateway.api('DELETE', `${path}/${name}`);
        names.delete(`${namespace}/${name}`);
        changed.set(uid, { at: performance.now(), version: undefined, namespace });
      } else {
        const { metadata } = (await gateway.api('PATCH', `${path}/${name}`, { data: object.data }, 'application/merge-patch+json')) as KubeObject;
        changed.set(uid, { at: performance.now(), version: metadata.resourceVersion, namespace });
      }
    };
    const permit = async (namespace: string): Promise<void> => {
      const bindings = `/apis/rbac.authorization.k8s.io/v1/namespaces/${namespace}/rolebindings`;
      const user = { apiGroup: 'rbac.authorization.k8s.io', kind: 'User', name: 'rita' };
      const role = { apiGroup: 'rbac.authorization.k8s.io', kind: 'ClusterRole', name: 'team-viewer' };
      if (allowed.delete(namespace)) await gateway.api('DELETE', `${bindings}/random`);
      else {
        await gateway.api('POST', bindings, { apiVersion: 'rbac.authorization.k8s.io/v1', kind: 'RoleBinding', metadata: { name: 'random' }, roleRef: role, subjects: [user] });
        allowed.add(namespace);
      }
      for (const object of changed.values()) if (object.namespace === namespace) object.at = performance.now();
    };

    /** What is wrong, if something is. */
    const wrong = (settled: boolean): string | undefined => {
      for (const { watches, kc, tab } of pages) {
        for (const watch of watches) {
          const { status, data } = watch.getSnapshot();
          if (settled && status !== 'live') return `${tab ? 'a tab' : 'a page'} is ${status}: ${JSON.stringify(kc.connection.getSnapshot())}`;
          if (status !== 'live') continue;
          const has = new Map(data.map(({ metadata }) => [metadata.uid, metadata.resourceVersion]));
          for (const [uid, { at, version, namespace }] of changed) {
            const age = performance.now() - at;
            const now = allowed.has(namespace) ? version : undefined;
            if ((settled || age > oldest) && has.get(uid) !== now) return `${tab ? 'a tab' : 'a page'}, live ${Math.round(performance.now())}: ${namespace} ${uid} is ${has.get(uid) ?? 'not there'} and not ${now ?? 'gone'}, ${Math.round(age)} ms after it changed`;
          }
        }
      }
      return undefined;
    };

    let down = false;
    let away = false;
    const events: string[] = [];
    const turn = async (): Promise<void> => {
      const what = below(14);
      events.push(`${Math.round(performance.now())} ${what}`);
      switch (what) {
        case 0:
          front.cut();
          break;
        case 1:
          front.silence();
          break;
        case 2:
          if (!down) await gateway.killGateway();
          down = true;
          break;
        case 3:
        case 4:
          if (down) await gateway.startGateway();
          down = false;
          break;
        case 5:
          if (!away) await gateway.line.cut();
          away = true;
          break;
        case 6:
        case 7:
          if (away) await gateway.line.mend();
          away = false;
          break;
        case 8:
        case 9:
          await permit(pick(sometimes));
          break;
        case 10:
          if (pages.length > 2) close(pick(pages));
          break;
        case 11:
          if (pages.length < 8) open(random() < 0.7);
          break;
        case 12: {
          const { kc } = pick(pages);
          kc.pause();
          setTimeout(() => kc.resume(), below(2_000));
          break;
        }
        case 13:
          pick(pages).kc.wake();
          break;
      }
    };

    try {
      for (let n = 0; n < 6; n++) open(n < 4);
      const began = performance.now();
      let calm = false;
      while (performance.now() < began + seconds * 1_000) {
        for (let n = below(4); n > 0; n--) await change();
        // Much goes wrong for a while, and then nothing more: what is dead by then nobody cuts, it has to be found out.
        const rests = (performance.now() - began) % 40_000 > 15_000;
        if (rests && !calm) front.silence();
        calm = rests;
        if (random() < (calm ? 0.005 : 0.3)) await turn();
        await new Promise((resolve) => setTimeout(resolve, below(300)));
        const bad = wrong(false);
        if (bad !== undefined) throw new Error(`seed ${seed}: ${bad}\n${events.join('\n')}`);
      }
      if (away) await gateway.line.mend();
      if (down) await gateway.startGateway();
      await change();
      for (const { watches } of pages) for (const watch of watches) watch.retry();
      for (const deadline = performance.now() + 150_000; wrong(true) !== undefined; ) {
        if (performance.now() > deadline) throw new Error(`seed ${seed}: ${wrong(true)}\n${events.join('\n')}`);
        await new Promise((resolve) => setTimeout(resolve, 100));
      }
      expect(changed.size).toBeGreaterThan(8);
    } finally {
      for (const page of [...pages]) {
        page.kc.close();
        page.tab?.kill();
      }
    }
  });
});

// @vitest-environment happy-dom
// Components that ask for this, for that, or for nothing, at random, while streams break, in virtual time and in four frameworks.
// KUBECAST_STEPS=100000 for long, KUBECAST_SEED to repeat one.
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createKubecast, type Kubecast, type KubeObject } from '@kubecast/sdk';
import { MockGateway } from '../../mock/index.ts';
import { seededRandom } from '../../mock/random.ts';
import '../../mock/setup.ts';
import { frameworks, jobs, type Ask, type Mounted } from './mounted.ts';

const steps = Number(process.env.KUBECAST_STEPS ?? 600);
const seed = Number(process.env.KUBECAST_SEED ?? 11);
const linger = 500;

let gateway: MockGateway;
let kc: Kubecast;
let mounted: Mounted | undefined;
beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  gateway = new MockGateway();
});
afterEach(() => {
  mounted?.end();
  mounted = undefined;
  kc.close();
  gateway.cutAll();
  vi.useRealTimers();
});

const namespaces = ['n0', 'n1', 'n2'];
const colours = ['red', 'blue'];
const rows: readonly Ask['rows'][] = ['skip', {}, ...namespaces.map((namespace) => ({ namespace })), ...colours.map((colour) => ({ labels: `colour=${colour}` }))];
const colourOf = ({ metadata }: KubeObject): string | undefined => metadata.labels?.['colour'];
const version = ({ metadata }: KubeObject): string => `${metadata.uid} ${metadata.resourceVersion}`;

/** What is asked for, and no more. */
function wanted(ask: Ask['rows'], object: KubeObject): boolean {
  if (ask === 'skip') return false;
  return (ask.namespace ?? object.metadata.namespace) === object.metadata.namespace && (ask.labels ?? `colour=${colourOf(object)}`) === `colour=${colourOf(object)}`;
}

test.each(Object.entries(frameworks))(`${steps} steps in %s: what is shown is of what is asked for by now, and nothing else is followed`, { timeout: 3_600_000 }, async (_, show) => {
  const random = seededRandom(seed);
  const below = (n: number): number => Math.floor(random() * n);
  const pick = <T>(from: readonly T[]): T => from[below(from.length)] as T;
  // What components render waits for no timer: each framework has shown by then what it was told.
  const pass = (ms = 0): Promise<void> => act(async () => {
    await vi.advanceTimersByTimeAsync(ms);
  });
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, random, linger });
  let asked: Ask = { rows: 'skip', object: undefined };
  let live = 0;

  const change = (): void => {
    const [namespace, name] = [pick(namespaces), `j${below(4)}`];
    const there = gateway.cluster.list('jobs').find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
    if (there && random() < 0.3) gateway.cluster.remove('jobs', there.metadata.uid);
    else gateway.cluster.put('jobs', { metadata: { name, namespace, uid: there?.metadata.uid ?? `u${gateway.cluster.version}`, labels: { colour: pick(colours) } } });
  };
  const choose = (): Ask => ({
    rows: random() < 0.3 ? asked.rows : pick(rows),
    object: random() < 0.4 ? pick(['skip', undefined]) : { namespace: pick(namespaces), name: `j${below(4)}` },
  });
  const paths = (): number => Number(asked.rows !== 'skip') + Number(asked.object !== 'skip' && asked.object !== undefined);

  const check = (settled: boolean): void => {
    if (!mounted) return;
    const { rows: listed, object: one } = mounted.shown();
    const idle = { rows: asked.rows === 'skip', object: typeof asked.object !== 'object' };
    expect([listed.status === 'idle', one.status === 'idle']).toEqual([idle.rows, idle.object]);
    // Whatever its age: it was asked for.
    expect(listed.data.filter((object) => !wanted(asked.rows, object))).toEqual([]);
    if (typeof asked.object !== 'object') expect(one.data).toBeUndefined();
    else if (one.data) expect(one.data.metadata).toMatchObject(asked.object);
    const subscribed = [...kc.inside.entries.values()].filter(({ subscribers }) => subscribers > 0);
    expect(subscribed).toHaveLength(paths());
    if (!settled) return;
    const all = gateway.cluster.list('jobs');
    if (!idle.rows) expect([listed.status, ...listed.data.map(version).sort()]).toEqual(['live', ...all.filter((object) => wanted(asked.rows, object)).map(version).sort()]);
    if (typeof asked.object === 'object') {
      const { namespace, name } = asked.object;
      const there = all.find(({ metadata }) => metadata.namespace === namespace && metadata.name === name);
      expect([one.status, one.data && version(one.data)]).toEqual(['live', there && version(there)]);
    }
    expect(kc.inside.entries.size).toBe(paths()); // what is not asked for any more was left
    expect(gateway.streams.size).toBe(Math.min(1, paths()));
    expect(vi.getTimerCount()).toBeLessThan(10);
    live += paths();
  };

  mounted = show(kc, asked);
  expect(gateway.requests).toEqual([]);
  for (let step = 1; step <= steps; step++) {
    for (let n = below(3); n > 0; n--) change();
    switch (below(16)) {
      case 0:
        gateway.cutAll();
        break;
      case 1:
        gateway.cluster.compact();
        break;
      case 2:
        gateway.away = random() < 0.3;
        if (gateway.away) gateway.cutAll();
        break;
      case 3:
        gateway.sabotage = random() < 0.5 ? (text) => (random() < 0.05 ? below(text.length) : undefined) : undefined;
        break;
      case 4:
        mounted.end();
        mounted = show(kc, asked);
        break;
      case 6: {
        // A stream that was too slow: what it was not told is not told any more, but what there is.
        const watchers = [...gateway.cluster.watchers];
        gateway.cluster.watchers.clear();
        for (let n = below(8); n > 0; n--) change();
        for (const watcher of watchers) gateway.cluster.watchers.add(watcher);
        for (const stream of gateway.streams) for (const watch of stream.watches) stream.reset(watch, 'slow');
        break;
      }
      case 7: {
        const some = random() < 0.4 ? undefined : namespaces.filter(() => random() < 0.6);
        gateway.users.set('let-me-in', { ...(some && { namespaces: some }) });
        for (const stream of [...gateway.streams]) stream.see(some);
        break;
      }
      case 5: {
        // Away for long, and back for as long as it takes to tell a part of what was missed.
        gateway.away = true;
        gateway.cutAll();
        await pass(below(3_000));
        for (let n = below(8); n > 0; n--) change();
        let left = below(12);
        gateway.sabotage = () => (left-- > 0 ? undefined : 0);
        gateway.away = false;
        await pass(below(3_000));
        for (let n = below(8); n > 0; n--) change();
        if (random() < 0.5) gateway.sabotage = undefined;
        break;
      }
      default:
        // Several in a row at times: none of them has been shown by then.
        for (let n = random() < 0.2 ? 3 : 1; n > 0; n--) mounted.ask((asked = choose()));
    }
    try {
      await pass();
      check(false);
      await pass(random() < 0.1 ? below(3_000) : below(200));
      check(false);
      if (step % 10 === 0 || step === steps) {
        gateway.away = false;
        gateway.sabotage = undefined;
        gateway.users.set('let-me-in', {});
        for (const stream of [...gateway.streams]) stream.see(undefined);
        if (asked.rows !== 'skip') kc.watch(jobs, asked.rows).retry();
        if (typeof asked.object === 'object') kc.watch(jobs, asked.object).retry();
        await pass(40_000);
        check(true);
        gateway.requests.length = 0;
      }
    } catch (error) {
      throw new Error(`step ${step}, seed ${seed}: ${String(error)}`, { cause: error });
    }
  }
  expect(live).toBeGreaterThan(steps / 15);
});

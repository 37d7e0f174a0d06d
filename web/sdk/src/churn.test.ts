// A page that is open all day: an hour of it, in virtual time, must not leave more behind than its first minutes.

import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { MockGateway } from '../../mock/gateway.ts';
import { createKubecast, defineResource, find, logs, page, type Kubecast } from './index.ts';

setFlagsFromString('--expose-gc');
const collectGarbage = runInNewContext('gc') as () => void;

const pods = defineResource()({ version: 'v1', plural: 'pods' });
const jobs = defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' });

let gateway: MockGateway;

beforeEach(() => {
  vi.useFakeTimers({ now: Date.UTC(2030, 0, 1) });
  gateway = new MockGateway();
});
afterEach(() => {
  gateway.cutAll();
  vi.useRealTimers();
});

/** What is in use once nothing more can be collected, in bytes. */
async function inUse(): Promise<number> {
  let least = Infinity;
  for (let n = 0; n < 4; n++) {
    await vi.advanceTimersByTimeAsync(0);
    collectGarbage();
    least = Math.min(least, process.memoryUsage().heapUsed);
  }
  return least;
}

test('an hour of watches that come and go, tokens, cuts and clients leaves nothing behind', { timeout: 120_000 }, async () => {
  // Node's own, of a signal that has more and more listeners.
  const warnings: string[] = [];
  const onWarning = ({ message }: Error): unknown => warnings.push(message);
  process.on('warning', onWarning);
  let token = 0;
  const asWhom = (): string => {
    gateway.users.clear();
    gateway.users.set(`t${++token}`, {});
    return `t${token}`;
  };
  const make = (): Kubecast => createKubecast({ token: asWhom, fetch: gateway.fetch, random: () => 0.5, linger: 1_000 });
  const kc = make();
  let changes = 0;
  const steady = kc.watch(jobs);
  steady.subscribe(() => changes++);

  const used: number[] = [];
  for (let second = 1; second <= 3_600; second++) {
    const namespace = `n${second}`; // no path is asked for twice
    const { metadata } = gateway.cluster.put('jobs', { metadata: { name: 'job', namespace, annotations: { note: 'x'.repeat(1_000) } } });
    const leave = [kc.watch(pods, { namespace }), kc.watch(jobs, { namespace })].map((watch) => watch.subscribe(() => undefined));
    if (second % 7 === 0) leave.push(kc.follow(page(pods, { namespace, limit: 10, sort: ['metadata.name'] })).subscribe(() => undefined));
    // What is refused ends a stream, too. Then one goes on for long, while its watches change.
    if (second < 600 && second % 13 === 0) gateway.cutAll();
    if (second < 600 && second % 11 === 0) leave.push(kc.follow(logs(jobs, { namespace, name: 'job' })).subscribe(() => undefined));
    if (second % 17 === 0) gateway.cluster.compact();
    if (second % 19 === 0) kc.wake();
    if (second % 23 === 0) {
      const other = make();
      other.watch(jobs).subscribe(() => undefined);
      await vi.advanceTimersByTimeAsync(100);
      other.close();
    }
    await vi.advanceTimersByTimeAsync(1_000);
    find(steady, metadata.uid);
    for (const gone of leave) gone();
    gateway.cluster.remove('jobs', metadata.uid);
    gateway.requests.length = 0;
    if (second % 600 === 0) {
      gateway.cluster.compact();
      await vi.advanceTimersByTimeAsync(60_000);
      used.push(await inUse());
      expect(kc.inside.entries.size).toBe(1);
      expect(gateway.streams.size).toBe(1);
    }
  }
  expect(changes).toBeGreaterThan(3_600);
  expect(steady.getSnapshot()).toMatchObject({ status: 'live', data: [] });
  kc.close();
  process.off('warning', onWarning);
  expect(warnings).toEqual([]);

  const [, early = 0, ...later] = used;
  expect(vi.getTimerCount()).toBe(0);
  expect(Math.min(...later.slice(-2)) - early, used.join(' ')).toBeLessThan(500_000);
});

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { MockGateway } from '../../../mock/index.ts';
import { createKubecast, type Kubecast, type Watch } from '../kubecast.ts';
import type { KubeObject } from '../object.ts';
import { defineResource } from '../resource.ts';
import { Devtools } from './devtools.ts';

const jobs = defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' });
let gateway: MockGateway;
let tools: Devtools;
let kc: Kubecast;
let watch: Watch<KubeObject>;

beforeEach(async () => {
  vi.useFakeTimers();
  gateway = new MockGateway();
  put('train');
  tools = new Devtools({ gateway: 'http://page.invalid', fetch: gateway.fetch, delay: 500 });
  kc = createKubecast({ token: () => 'let-me-in', fetch: tools.fetch, random: () => 0.5 });
  watch = kc.watch(jobs);
  watch.subscribe(() => undefined);
  await pass(50);
  expect(status()).toBe('live');
});

afterEach(() => {
  kc.close();
  vi.useRealTimers();
});

const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const status = () => watch.getSnapshot().reason ?? watch.getSnapshot().status;
const names = () => watch.getSnapshot().data.map(({ metadata }) => metadata.name).sort().join();
const put = (name: string, more = {}) => gateway.cluster.put('jobs', { metadata: { name, namespace: 'team-a' }, ...more });
const stream = () => tools.streams.at(-1);

/** Whatever went wrong, the page has what the cluster has. */
async function recovers(): Promise<void> {
  put('after');
  await pass(5_000);
  expect([status(), names()]).toEqual(['live', 'after,train']);
}

describe('what is seen', () => {
  test('streams with their positions and bytes, and the last frames, of which there are never too many', async () => {
    const { from, position, bytes, frames, end } = stream() ?? {};
    expect({ from, end }).toEqual({ from: '', end: undefined });
    expect(position).toBe(kc.inside.client?.lastEventId);
    expect(frames).toBe(tools.frames.length);
    expect(bytes).toBeGreaterThan(tools.frames.reduce((sum, { size }) => sum + size, 0));
    for (let n = 0; n < 300; n++) put(`job-${n}`);
    await pass(1_000);
    expect(tools.frames).toHaveLength(200);
    expect(tools.frames.at(-1)?.data).toContain('job-299');
  });

  test('no token, no data of a Secret and no secret variable is kept', async () => {
    const jwt = 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJtYXJhIn0.sig';
    put('leaky', {
      data: { key: 'cGxhaW4=' },
      spec: { note: `Bearer abc123 ${jwt} let-me-in`, env: [{ name: 'DB_PASSWORD', value: 'hunter2' }, { name: 'PORT', value: '8080' }], accessToken: 'opaque' },
    });
    await pass(50);
    await tools.fetch('http://page.invalid/stream?access_token=opaque&x=/apis/batch/v1/jobs', { headers: { Accept: 'text/event-stream', Authorization: 'Bearer let-me-in' } });
    const kept = JSON.stringify([tools.frames, tools.streams, tools.resets]);
    expect(kept).toContain('leaky');
    for (const rest of ['8080', 'DB_PASSWORD']) expect(kept).toContain(rest); // what is beside them is still there
    for (const secret of ['cGxhaW4=', 'abc123', jwt, 'let-me-in', 'hunter2', 'opaque']) expect(kept).not.toContain(secret);
  });

  test('requests to others pass untouched', async () => {
    tools.set('offline', true);
    const asked: unknown[] = [];
    const other = new Devtools({ gateway: 'http://page.invalid', fetch: (input) => (asked.push(input), Promise.resolve(new Response('theirs'))) });
    other.set('offline', true);
    expect(await (await other.fetch('http://elsewhere.invalid/stream')).text()).toBe('theirs');
    await expect(other.fetch('/apis')).rejects.toThrow('network error');
    expect(asked).toEqual(['http://elsewhere.invalid/stream']);
  });
});

describe('faults do what they say, and the page recovers', () => {
  test('cut: the stream breaks, and goes on from its position without a snapshot', async () => {
    const { position } = stream() ?? {};
    tools.inject('cut');
    await pass(1);
    expect(tools.streams[0]?.end).toBe('fault: cut');
    expect(status()).toBe('reconnecting');
    await recovers();
    expect(stream()?.from).toBe(position);
    expect(tools.resets).toEqual([]);
  });

  test('410: the watch is told a reset with its cause, and what was deleted meanwhile is gone', async () => {
    const gone = put('gone');
    await pass(50);
    expect(names()).toBe('gone,train');
    tools.inject('410');
    gateway.cluster.remove('jobs', gone.metadata.uid);
    await recovers();
    expect(tools.resets.map(({ watch: of, reason }) => [of, reason])).toEqual([['w0', 'expired']]);
    expect(gateway.requests.at(-1)?.lastEventId).toBe('');
  });

  test('429: the gateway refuses until the fault is off', async () => {
    tools.set('429', true);
    await pass(4_000);
    expect(kc.connection.getSnapshot()?.error?.reason).toBe('http:429');
    expect(stream()?.end).toBe('HTTP 429');
    tools.set('429', false);
    kc.wake();
    await recovers();
  });

  test('offline: nothing gets anywhere until the fault is off', async () => {
    tools.set('offline', true);
    await pass(4_000);
    expect(gateway.requests).toHaveLength(1);
    expect([status(), kc.connection.getSnapshot()?.error?.reason]).toEqual(['reconnecting', 'network']);
    tools.set('offline', false);
    kc.wake();
    await recovers();
  });

  test('stale: the page says so, and as of when, and is live again without a new stream', async () => {
    tools.set('stale', true);
    await pass(50);
    expect([watch.getSnapshot().status, status()]).toEqual(['stale', 'unreachable']);
    expect(watch.getSnapshot().asOf).toBeDefined();
    tools.set('stale', false);
    await recovers();
    expect(gateway.requests).toHaveLength(1);
  });

  test('delay: a change comes that much later, and all in their order', async () => {
    tools.set('delay', true);
    for (const name of ['first', 'second']) gateway.cluster.remove('jobs', put(name).metadata.uid);
    const third = put('third');
    const before = tools.frames.length;
    await pass(300);
    expect(tools.frames).toHaveLength(before);
    await pass(3_000);
    expect(names()).toBe('third,train');
    tools.set('delay', false);
    gateway.cluster.remove('jobs', third.metadata.uid);
    await recovers();
  });

  test('half-open: nothing comes and nothing breaks; what was lost is never skipped, and a page that wakes finds out', async () => {
    tools.set('half-open', true);
    put('lost');
    await pass(1_000);
    expect([names(), stream()?.end]).toEqual(['train', undefined]);
    tools.set('half-open', false);
    put('later');
    await pass(1_000);
    expect(names()).toBe('train');
    kc.wake();
    await pass(3_000);
    expect([status(), names()]).toEqual(['live', 'later,lost,train']);
  });
});

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { frame, ScriptedFetch, type ScriptedBody } from '../../mock/fetch.ts';
import { Client } from './client.ts';
import type { ClientOptions } from './clientoptions.ts';
import type { ConnectionState } from './state.ts';

let server: ScriptedFetch;
let client: Client | undefined;
let states: ConnectionState[];

beforeEach(() => {
  vi.useFakeTimers();
  server = new ScriptedFetch();
  states = [];
});

afterEach(() => {
  client?.close();
  vi.useRealTimers();
});

async function connect(options: Partial<ClientOptions> = {}): Promise<Client> {
  client = new Client({
    url: '/stream?jobs=x',
    fetch: server.fetch,
    random: () => 0.5,
    onEvent: () => undefined,
    onState: (state) => states.push(state),
    ...options,
  });
  await settle();
  return client;
}

/** Lets everything run that needs no time. */
const settle = (): Promise<unknown> => vi.advanceTimersByTimeAsync(0);
const pass = (ms: number): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const bookmark = (id: string): string => frame('jobs.bookmark', id, { resourceVersion: '1' });
const status = (): string => [client?.state.status, client?.state.reason, client?.state.error?.reason].filter(Boolean).join(' ');

const hour = 3_600_000;

/** A client that is live, with the position e.jobs-1. */
async function live(options: Partial<ClientOptions> = {}): Promise<ScriptedBody> {
  await connect(options);
  const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'));
  await settle();
  expect(status()).toBe('live');
  return body;
}

describe('how old what is shown is', () => {
  const away = frame('goodbye', 'e', { reason: 'unavailable' });

  test('a gateway that lets in and says goodbye is never called live, and does not make old rows newer', async () => {
    const body = await live();
    body.end();
    await settle();
    const lost = client?.state.asOf ?? 0;
    states.length = 0;
    for (let n = 0; n < 4; n++) {
      for (const before = server.requests.length; server.requests.length === before; ) await pass(1_000);
      server.last.accept('retry: 1000\n\n', away);
      await settle();
    }
    expect(status()).toBe('stale reconnecting goodbye:unavailable');
    expect(client?.state.asOf).toBe(lost);
    expect(states.map((state) => state.status)).not.toContain('live');
  });

  test('an answer that ends without a word, as an ingress may give for an absent gateway, is not live', async () => {
    await connect();
    server.last.accept('retry: 1000\n\n').end();
    await settle();
    expect(states.map((state) => state.status)).toEqual(['loading']);
  });

  test('who never received anything is connecting, not reconnecting', async () => {
    await connect();
    server.last.accept('retry: 1000\n\n', away);
    await settle();
    expect(status()).toBe('loading goodbye:unavailable');
  });

  test('what was old since noon and is lost at one is as of noon', async () => {
    await connect();
    const noon = Date.now() - hour;
    const body = server.last.accept(frame('jobs.stale', 'e.jobs-1', { since: new Date(noon).toISOString(), reason: 'unreachable' }));
    await settle();
    body.push(':\n\n'); // a heartbeat makes it no newer
    await settle();
    expect(client?.state).toMatchObject({ status: 'stale', asOf: noon });
    body.end();
    await settle();
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: noon });
  });

  test('a quiet stream is as of its last heartbeat', async () => {
    const body = await live();
    await pass(14_000);
    body.push(':\n\n');
    await settle();
    const heard = Date.now();
    await pass(9_000);
    body.break();
    await settle();
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: heard });
  });
});

describe('sleep and clocks', () => {
  test('a page that wakes looks at once whether its stream still stands, and within two seconds says so if not', async () => {
    await live();
    const heard = Date.now();
    vi.setSystemTime(heard + hour); // while the machine slept, no timer ran
    client?.wake();
    await pass(1_999);
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
    await pass(1);
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', error: { reason: 'silent' }, asOf: heard });
    server.last.accept(bookmark('e.jobs-9'));
    await settle();
    expect(status()).toBe('live');
    expect(server.requests[0]?.aborted).toBe(true);
  });

  test('a stream that speaks stands: the one beside it is given up', async () => {
    const body = await live();
    client?.wake();
    await pass(2_500);
    expect(status()).toBe('stale reconnecting silent');
    body.push(':\n\n');
    await settle();
    expect(status()).toBe('live');
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test('a network that is gone is told at once, not when the stream has been silent for long enough', async () => {
    await live();
    client?.wake();
    await settle();
    server.last.fail();
    await settle();
    expect(status()).toBe('stale reconnecting network');
  });

  test('a gateway that has no room for a second stream says nothing about the first', async () => {
    await live();
    client?.wake();
    await settle();
    server.last.accept(frame('goodbye', 'e', { reason: 'limit' }));
    await settle();
    expect(status()).toBe('live');
    expect(server.requests[0]?.aborted).toBe(false);
  });

  test('what has waited for a page that slept is no news, however long it slept; what comes later is', async () => {
    const body = await live();
    const heard = Date.now();
    vi.setSystemTime(heard + hour);
    body.push(frame('jobs.added', 'e.jobs-2', { metadata: { name: 'b', uid: 'b' } })); // is read before any timer runs
    await settle();
    expect(client?.asOf).toBe(heard);
    await pass(2_000);
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', error: { reason: 'silent' }, asOf: heard });
    expect(client?.lastEventId).toBe('e.jobs-2'); // it is taken, though
    body.push(':\n\n');
    await settle();
    expect(status()).toBe('live');
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test('and a stream that is opened anew is not kept waiting for it', async () => {
    const body = await live();
    vi.setSystemTime(Date.now() + hour);
    body.push(':\n\n');
    await settle();
    server.last.accept(bookmark('e.jobs-9'));
    await settle();
    expect([status(), client?.lastEventId]).toEqual(['live', 'e.jobs-9']);
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([true, false]);
  });

  test('sleep that nobody tells of is noticed within seconds', async () => {
    await live();
    const heard = Date.now();
    vi.setSystemTime(heard + hour);
    await pass(7_000);
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', error: { reason: 'silent' }, asOf: heard });
  });

  test('a wall clock that is set back does not switch the watchdog off', async () => {
    await live();
    vi.setSystemTime(Date.now() - hour);
    await pass(38_000);
    expect(client?.state.reason).toBe('reconnecting');
    expect(server.requests[0]?.aborted).toBe(true);
  });

  test('a wall clock that is set forward does not kill a good stream', async () => {
    const body = await live();
    vi.setSystemTime(Date.now() + hour);
    for (let n = 0; n < 6; n++) {
      await pass(10_000);
      body.push(':\n\n');
      await settle();
      expect(status()).toBe('live');
    }
    expect(server.requests[0]?.aborted).toBe(false);
  });

  test('no clock makes a timer longer than browsers have them, which would end at once, for ever', async () => {
    const timers = vi.spyOn(globalThis, 'setTimeout');
    await live();
    vi.setSystemTime(Date.now() - 40 * 24 * hour);
    await pass(20_000);
    expect(Math.max(...timers.mock.calls.map(([, ms]) => ms ?? 0))).toBeLessThan(60_000);
    timers.mockRestore();
  });
});

describe('a stream that is let go of', () => {
  test('asks for nothing, says as of when it is, and goes on where it was', async () => {
    const body = await live();
    const heard = Date.now();
    await pass(1_000);
    client?.pause();
    await pass(hour);
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'paused', asOf: heard });
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([true]);
    body.push(bookmark('e.jobs-2'));
    client?.resume();
    await settle();
    expect(client?.state).toMatchObject({ status: 'stale', reason: 'reconnecting', asOf: heard });
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
  });

  test('before it began: nothing is sent until it is wanted', async () => {
    client = new Client({ url: '/stream?jobs=x', fetch: server.fetch, onEvent: () => undefined });
    client.pause();
    await pass(1_000);
    expect(server.requests).toHaveLength(0);
    client.resume();
    await settle();
    expect(server.requests).toHaveLength(1);
    expect(status()).toBe('loading');
  });
});

describe('another address', () => {
  test('is asked from where the old one is, which goes on until the new one speaks', async () => {
    await live();
    client?.follow('/stream?jobs=x&pods=y');
    await settle();
    expect(server.last.url).toMatch(/^\/stream\?jobs=x&pods=y&/);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
    expect(server.requests[0]?.aborted).toBe(false);
    server.last.accept(bookmark('e.jobs-2.pods-2'));
    await settle();
    expect(server.requests[0]?.aborted).toBe(true);
    expect(states.map((state) => state.status)).toEqual(['live']);
  });

  test('that is slow holds nothing back for long, and is asked again from behind what was told', async () => {
    const body = await live();
    client?.follow('/stream?pods=y');
    await settle();
    body.push(bookmark('e.jobs-2'));
    await pass(1_999);
    expect(client?.lastEventId).toBe('e.jobs-1');
    await pass(1);
    expect(client?.lastEventId).toBe('e.jobs-2');
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([false, true, false]);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-2');
  });

  test('and back: nothing is left of it', async () => {
    await live();
    client?.follow('/stream?pods=y');
    await settle();
    client?.follow('/stream?jobs=x');
    await settle();
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([false, true]);
  });
});

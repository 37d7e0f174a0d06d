import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { Client } from './client.ts';
import type { ClientOptions } from './clientoptions.ts';
import type { StreamEvent } from './events.ts';
import type { ConnectionState } from './state.ts';

let server: ScriptedFetch;
let client: Client | undefined;
let events: StreamEvent[];
let states: ConnectionState[];
let opened: boolean[];

beforeEach(() => {
  vi.useFakeTimers();
  server = new ScriptedFetch();
  events = [];
  states = [];
  opened = [];
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
    onEvent: (event) => events.push(event),
    onState: (state) => states.push(state),
    onOpen: (resumed) => opened.push(resumed),
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

describe('resuming', () => {
  test('the first request has no position, the next one that of the last event', async () => {
    await connect({ token: () => 't1' });
    expect(server.last.headers.get('Accept')).toBe('text/event-stream');
    expect(server.last.headers.get('Authorization')).toBe('Bearer t1');
    expect(server.last.headers.has('Last-Event-ID')).toBe(false);
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'));
    await settle();
    body.end();
    await pass(100);
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-5');
    server.last.accept();
    await settle();
    expect(opened).toEqual([false, true]);
  });

  test('an id without an event is a position too', async () => {
    await connect();
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'), 'id: e.jobs-6\n\n');
    await settle();
    body.end();
    await pass(100);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-6');
  });

  test('the id of a frame that was cut off is not claimed', async () => {
    await connect();
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'), 'id: e.jobs-6\nevent: jobs.bookmark\ndata: {}\n');
    await settle();
    body.break();
    await pass(100);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-5');
  });

  test('an event whose data is broken is not skipped: the stream is asked for again from before it', async () => {
    await connect();
    server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'), 'id: e.jobs-6\nevent: jobs.added\ndata: {"met\n\n', bookmark('e.jobs-7'));
    await settle();
    expect(status()).toBe('stale reconnecting unreadable');
    await pass(1_000);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-5');
    expect(events).toHaveLength(1);
  });

  test('what cannot be read twice from the same position is asked for from the start', async () => {
    await connect({ lastEventId: 'e.jobs-1' });
    const positions: (string | null)[] = [];
    for (let n = 0; n < 3; n++) {
      positions.push(server.last.headers.get('Last-Event-ID'));
      server.last.accept('retry: 100\n\n', 'event: jobs.added\nid: e.jobs-2\ndata: {"metadata":{}}\n\n');
      await pass(20_000);
    }
    expect(positions).toEqual(['e.jobs-1', 'e.jobs-1', null]);
  });

  test('the server is asked to be heard of as often as its silence is measured by', async () => {
    await connect();
    expect(server.last.url).toBe('/stream?jobs=x&heartbeat=15s');
    client?.close();
    await connect({ url: '/api/v1/pods', heartbeat: 1_000 }); // which is more often than it would do
    expect(server.last.url).toBe('/api/v1/pods?heartbeat=5s');
  });

  test('an event that the caller could not take ends the stream instead of being lost', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await connect({
      onEvent: () => {
        throw new Error('boom');
      },
    });
    server.last.accept(bookmark('e.jobs-5'));
    await settle();
    expect(status()).toBe('failed callback');
    expect(client?.state.error?.message).toBe('boom');
    expect(client?.lastEventId).toBe('');
    expect(log).toHaveBeenCalledOnce();
    log.mockRestore();
  });

  test('starting over forgets the position', async () => {
    await connect({ lastEventId: 'e.jobs-1' });
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
    server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'));
    await settle();
    client?.startOver();
    await pass(1_000);
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.has('Last-Event-ID')).toBe(false);
  });

  test('starting over while an attempt is under way, or a token handed over, begins without a position', async () => {
    await connect({ lastEventId: 'e.jobs-1', token: (reason) => reason });
    client?.startOver();
    await pass(2_000);
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([true, false]);
    expect(server.last.headers.has('Last-Event-ID')).toBe(false);
    server.last.accept(bookmark('e.jobs-5'), frame('expiring', 'e.jobs-5', {}));
    await settle();
    expect(server.requests).toHaveLength(3);
    client?.startOver();
    server.last.accept(bookmark('e.jobs-6'));
    await pass(2_000);
    expect(server.requests).toHaveLength(4);
    expect(server.last.headers.has('Last-Event-ID')).toBe(false);
  });

  test('a position that no header can carry does not keep the client from connecting', async () => {
    await connect({ lastEventId: 'é\n' });
    expect(server.last.headers.has('Last-Event-ID')).toBe(false);
    server.last.accept();
    await settle();
    expect(opened).toEqual([false]);
  });
});

describe('coming back', () => {
  test.each([
    ['a clean end', (body: { end(): void; break(): void }) => body.end(), 'ended'],
    ['a broken connection', (body: { end(): void; break(): void }) => body.break(), 'network'],
  ])('after %s, when the server said', async (_, how, reason) => {
    await connect();
    const body = server.last.accept('retry: 700\n\n', bookmark('e.jobs-5'));
    await settle();
    expect(status()).toBe('live');
    how(body);
    await settle();
    expect(status()).toBe(`stale reconnecting ${reason}`);
    expect(client?.state.retryAt).toBe(Date.now() + 700);
    await pass(699);
    expect(server.requests).toHaveLength(1);
    await pass(1);
    expect(server.requests).toHaveLength(2);
    expect(client?.state.retryAt).toBeUndefined();
    server.last.accept(bookmark('e.jobs-5'));
    await settle();
    expect(status()).toBe('live');
  });

  test('a goodbye ends the stream at once, without waiting for the server to hang up', async () => {
    await connect();
    server.last.accept('retry: 100\n\n', bookmark('e.jobs-5'), frame('goodbye', 'e.jobs-6', { reason: 'drain' }));
    await settle();
    expect(status()).toBe('stale reconnecting goodbye:drain');
    expect(server.last.aborted).toBe(true);
    await pass(100);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-6');
  });

  test('a drained stream is gone on with as soon as its last retry says; a gateway that is not there, with growing patience', async () => {
    await connect();
    server.last.accept('retry: 3000\n\n', bookmark('e.jobs-5'), 'retry: 120\n\n', frame('goodbye', 'e.jobs-6', { reason: 'drain' }));
    await settle();
    expect(client?.state.retryAt).toBe(Date.now() + 120);
    await pass(119);
    expect(server.requests).toHaveLength(1);
    await pass(1);
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-6');
    // Another one that drains turns it away, and says how long: this is no moment that was chosen for this client.
    server.last.accept('retry: 3000\n\n', 'retry: 4000\n\n', frame('goodbye', 'e.jobs-6', { reason: 'drain' }));
    await settle();
    expect((client?.state.retryAt ?? 0) - Date.now()).toBe(4_000 + 4_000);
    await pass(8_000);
    // The next one keeps it: what was told in between counts no more.
    const body = server.last.accept('retry: 2500\n\n', bookmark('e.jobs-7'));
    await settle();
    expect(status()).toBe('live');
    body.break();
    await settle();
    expect(client?.state.retryAt).toBe(Date.now() + 2_500);
    const waits: number[] = [];
    for (let n = 0; n < 3; n++) {
      await pass((client?.state.retryAt ?? 0) - Date.now());
      server.last.fail();
      await settle();
      waits.push((client?.state.retryAt ?? 0) - Date.now());
    }
    expect(waits).toEqual([5_000, 7_500, 12_500]);
  });

  test('an overloaded server, which answers 200 and goodbye, is met with growing patience', async () => {
    await connect();
    const waits: number[] = [];
    for (let n = 0; n < 5; n++) {
      server.last.accept('retry: 1000\n\n', bookmark('e.jobs-5'), frame('goodbye', 'e.jobs-5', { reason: 'limit' }));
      await settle();
      waits.push((client?.state.retryAt ?? 0) - Date.now());
      await pass(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([2_000, 3_000, 5_000, 9_000, 16_000]);
  });

  test('nobody listening: each wait may be twice as long, up to a bound', async () => {
    await connect();
    const waits: number[] = [];
    for (let n = 0; n < 8; n++) {
      server.last.fail();
      await settle();
      waits.push((client?.state.retryAt ?? 0) - Date.now());
      await pass(waits.at(-1) ?? 0);
    }
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000, 15_000, 15_000, 15_000, 15_000]);
    expect(status()).toBe('loading network');
  });

  test('a healthy stream makes up for failures before it', async () => {
    await connect();
    for (let n = 0; n < 4; n++) {
      server.last.fail();
      await settle();
      await pass((client?.state.retryAt ?? 0) - Date.now());
    }
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'));
    await settle();
    body.break();
    await settle();
    expect(client?.state.retryAt).toBe(Date.now() + 100);
  });

  test.each([
    ['429 with Retry-After', 429, { 'Retry-After': '7' }, 7_000 + 1_000],
    ['503 with Retry-After', 503, { 'Retry-After': '7' }, 7_000 + 1_000],
    ['500', 500, {}, 1_000],
    ['502', 502, {}, 1_000],
  ])('%s is waited out', async (_, code, headers, wait) => {
    await connect();
    server.last.refuse(code, headers);
    await settle();
    expect(status()).toBe(`loading http:${code}`);
    expect(client?.state.retryAt).toBe(Date.now() + wait);
    await pass(wait);
    expect(server.requests).toHaveLength(2);
  });

  test('a page that is no event stream, as a proxy may send, is not taken for one', async () => {
    await connect({
      fetch: (() => Promise.resolve(new Response('<html>', { headers: { 'Content-Type': 'text/html' } }))),
    });
    expect(status()).toBe('loading not-a-stream');
  });

  test('asOf tells when the stream was lost, not when it was last tried', async () => {
    await connect();
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'));
    await settle();
    const lost = Date.now();
    body.break();
    await pass(100);
    server.last.fail();
    await pass(60_000);
    expect(client?.state.reason).toBe('reconnecting');
    expect(client?.state.asOf).toBe(lost);
  });

  test('wake cuts the wait short', async () => {
    await connect();
    server.last.fail();
    await settle();
    client?.wake();
    await settle();
    expect(server.requests).toHaveLength(2);
  });
});

describe('silence', () => {
  test('no byte for two and a half heartbeats is death; heartbeats are bytes', async () => {
    await connect({ heartbeat: 20_000 });
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'));
    for (let n = 0; n < 5; n++) {
      await pass(45_000);
      expect(status()).toBe('live');
      body.push(':\n\n');
      await settle();
    }
    await pass(49_999);
    expect(status()).toBe('live');
    await pass(1);
    expect(status()).toBe('stale reconnecting silent');
    expect(server.last.aborted).toBe(true);
  });

  test('a server that accepts and never answers is given up', async () => {
    await connect({ openTimeout: 5_000 });
    await pass(5_000);
    expect(status()).toBe('loading timeout');
    expect(server.requests[0]?.aborted).toBe(true);
  });
});

describe('what will not heal by trying again', () => {
  test.each([
    [204, 'failed'],
    [400, 'failed'],
    [403, 'denied'],
    [404, 'failed'],
    [405, 'failed'],
  ])('%i stops for good: %s', async (code, want) => {
    await connect();
    server.last.refuse(code, {}, JSON.stringify({ message: 'why' }));
    await pass(600_000);
    expect(status()).toBe(`${want} http:${code}`);
    expect(server.requests).toHaveLength(1);
    if (code !== 204) expect(client?.state.error?.message).toBe('why');
  });
});

describe('tokens', () => {
  test('401 without another token: denied after one request, no flood', async () => {
    const token = vi.fn(() => 'old');
    await connect({ token });
    server.last.refuse(401, {}, JSON.stringify({ detail: 'token is expired' }));
    await pass(600_000);
    expect(status()).toBe('denied http:401');
    expect(client?.state.error?.message).toBe('token is expired');
    expect(server.requests).toHaveLength(1);
    expect(token.mock.calls).toEqual([['connect'], ['refused']]);
  });

  test('401 with a fresh token: tried once at once, then denied', async () => {
    let n = 0;
    await connect({ token: () => `t${n++}` });
    server.last.refuse(401);
    await settle();
    expect(server.last.headers.get('Authorization')).toBe('Bearer t1');
    server.last.refuse(401);
    await pass(600_000);
    expect(status()).toBe('denied http:401');
    expect(server.requests).toHaveLength(2);
  });

  test('401 later, after a stream was open, earns another fresh token', async () => {
    let n = 0;
    await connect({ token: () => `t${n++}` });
    server.last.refuse(401);
    await settle();
    const body = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'));
    await settle();
    body.end();
    await pass(100);
    server.last.refuse(401);
    await settle();
    expect(server.requests).toHaveLength(4);
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
  });

  test('401 for a token that was put in the place of another long ago is no sign-out', async () => {
    let n = 0;
    const token = vi.fn((reason: string) => `t${reason === 'connect' ? n : ++n}`);
    await connect({ token });
    server.last.refuse(401);
    await settle();
    expect(server.last.headers.get('Authorization')).toBe('Bearer t1');
    server.last.fail(); // the lid is closed
    await pass(10_000);
    server.last.refuse(401); // and t1 has ended meanwhile
    await settle();
    expect(server.last.headers.get('Authorization')).toBe('Bearer t2');
  });

  test.each([
    ['another address', () => client?.follow('/stream?jobs=x&pods=y')],
    ['a pause', () => (client?.pause(), client?.resume())],
  ])('a good token that took the place of a refused one is no sign-out if %s breaks off its first attempt', async (_, breakOff) => {
    let token = 'old';
    await connect({ token: (reason) => (reason === 'refused' ? (token = 'new') : token) });
    server.last.refuse(401);
    await settle();
    breakOff();
    await settle();
    expect(server.requests).toHaveLength(3);
    expect(server.last.headers.get('Authorization')).toBe('Bearer new');
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    expect(status()).toBe('live');
  });

  test('401 for the next stream of an open one earns a fresh token, also if the open one has had one', async () => {
    let n = 0;
    await connect({ token: (reason) => `t${reason === 'connect' ? n : ++n}` });
    server.last.refuse(401);
    await settle();
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    client?.follow('/stream?jobs=x&pods=y');
    await settle();
    server.last.refuse(401); // since t1 has ended meanwhile
    await settle();
    expect(server.last.headers.get('Authorization')).toBe('Bearer t2');
  });

  test('a token source that never answers is given up, told of, and asked again', async () => {
    const token = vi.fn(() => new Promise<string>(() => undefined));
    await connect({ token });
    await pass(20_000);
    expect(status()).toBe('loading token');
    await pass(30_000);
    expect(token.mock.calls.length).toBeGreaterThan(1);
    const asked = token.mock.calls.length;
    await pass(5_000);
    client?.wake(); // nor need a person wait for it
    await settle();
    expect(token.mock.calls.length).toBeGreaterThan(asked);
  });

  test('handing over: what arrives meanwhile is not held back until the new stream is given up', async () => {
    await connect({ token: (reason) => reason });
    const body = server.last.accept(bookmark('e.jobs-5'), frame('expiring', 'e.jobs-5', {}));
    await settle();
    expect(server.requests).toHaveLength(2); // the seventh connection of HTTP/1.1, for example
    await pass(10_000);
    body.push(bookmark('e.jobs-6'));
    await settle();
    expect(client?.lastEventId).toBe('e.jobs-6');
    body.end();
    await pass(2_000);
    expect(server.last.headers.get('Authorization')).toBe('Bearer expiring'); // good for the next one
  });

  test('handing over to a stream that only says goodbye is none', async () => {
    await connect({ token: (reason) => reason });
    server.last.accept(bookmark('e.jobs-5'), frame('expiring', 'e.jobs-5', {}));
    await settle();
    server.last.accept(frame('goodbye', 'e.jobs-5', { reason: 'limit' }));
    await settle();
    expect(status()).toBe('live');
    expect(server.requests.map(({ aborted }) => aborted)).toEqual([false, true]);
  });

  test('a token source that fails for a while is asked again later', async () => {
    const token = vi.fn().mockRejectedValueOnce(new Error('identity provider is away')).mockResolvedValue('t');
    await connect({ token });
    expect(server.requests).toHaveLength(0);
    expect(status()).toBe('loading token');
    await pass(60_000);
    expect(server.last.headers.get('Authorization')).toBe('Bearer t');
  });

  test('expiring: the next stream is open before the old one is let go, and nothing is told twice', async () => {
    const token = vi.fn((reason: string) => (reason === 'expiring' ? 'new' : 'old'));
    await connect({ token });
    const old = server.last.accept(bookmark('e.jobs-1'), frame('expiring', 'e.jobs-1', { at: '2030-01-01T00:00:00Z' }));
    await settle();
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.get('Authorization')).toBe('Bearer new');
    expect(server.last.headers.get('Last-Event-ID')).toBe('e.jobs-1');
    expect(server.requests[0]?.aborted).toBe(false);
    old.push(bookmark('e.jobs-2')); // the new stream tells this one too
    await settle();
    server.last.accept(bookmark('e.jobs-2'));
    await settle();
    expect(server.requests[0]?.aborted).toBe(true);
    expect(events.map((event) => event.id)).toEqual(['e.jobs-1', 'e.jobs-1', 'e.jobs-2']);
    expect(states.map((state) => state.status)).toEqual(['live']);
  });

  test('expiring, but the new stream cannot be opened: the old one goes on and nothing is lost', async () => {
    const token = vi.fn((reason: string) => (reason === 'expiring' ? 'new' : 'old'));
    await connect({ token });
    const old = server.last.accept('retry: 100\n\n', frame('expiring', 'e.jobs-1', { at: '2030-01-01T00:00:00Z' }));
    await settle();
    old.push(bookmark('e.jobs-2'));
    server.last.fail();
    await settle();
    expect(events.map((event) => event.id)).toEqual(['e.jobs-1', 'e.jobs-2']);
    expect(status()).toBe('live');
    old.end();
    await pass(100);
    expect(server.last.headers.get('Authorization')).toBe('Bearer new');
  });

  test('expiring without a new token: the old stream goes on until the server ends it', async () => {
    const token = vi.fn((reason: string) => (reason === 'connect' ? 'old' : undefined));
    await connect({ token });
    const old = server.last.accept('retry: 100\n\n', frame('expiring', 'e.jobs-1', { at: '2030-01-01T00:00:00Z' }));
    await settle();
    old.push(bookmark('e.jobs-2'));
    await settle();
    expect(server.requests).toHaveLength(1);
    expect(events).toHaveLength(2);
  });

  test('expiring, and whoever gives tokens is away: asked again until the stream ends, and handed over as soon as it is back', async () => {
    const token = vi.fn((reason: string) => (reason === 'connect' ? Promise.resolve('old') : Promise.reject(new Error('away'))));
    await connect({ token });
    const old = server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'), frame('expiring', 'e.jobs-1', { at: '2030-01-01T00:00:00Z' }));
    await pass(10_000);
    expect(status()).toBe('live');
    expect(server.requests).toHaveLength(1);
    expect(token.mock.calls.length).toBeGreaterThan(2);
    token.mockImplementation((reason) => Promise.resolve(reason === 'expiring' ? 'new' : 'old'));
    for (let second = 0; second < 60 && server.requests.length < 2; second++) await pass(1_000);
    expect(server.last.headers.get('Authorization')).toBe('Bearer new');
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    expect(server.requests[0]?.aborted).toBe(true);
    expect(states.map((state) => state.status)).toEqual(['live']);
    old.end();
  });

  test('a session is renewed as a token is, but never sent', async () => {
    const session = vi.fn((reason: string) => (reason === 'expiring' ? 'until 10' : 'until 5'));
    await connect({ session });
    server.last.accept(bookmark('e.jobs-1'), frame('expiring', 'e.jobs-1', { at: '2030-01-01T00:00:00Z' }));
    await settle();
    expect(server.requests).toHaveLength(2);
    expect(server.last.headers.has('Authorization')).toBe(false);
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    expect(server.requests[0]?.aborted).toBe(true);
    expect(states.map((state) => state.status)).toEqual(['live']);
  });

  test('goodbye: expired asks for a new token rather than the one at hand', async () => {
    const token = vi.fn((reason: string) => (reason === 'expiring' ? 'new' : 'old'));
    await connect({ token });
    server.last.accept('retry: 100\n\n', bookmark('e.jobs-1'), frame('goodbye', 'e.jobs-1', { reason: 'expired' }));
    await pass(100);
    expect(server.last.headers.get('Authorization')).toBe('Bearer new');
  });
});

describe('states', () => {
  const stale = (watch: string, since: string): string => frame(`${watch}.stale`, 'e', { since, reason: 'watch-lost' });

  test('stale while any watch is, since the oldest; live when the last is back', async () => {
    await connect();
    const body = server.last.accept(stale('pods', '2030-01-01T00:00:10Z'), stale('jobs', '2030-01-01T00:00:05Z'));
    await settle();
    expect(status()).toBe('stale watch-lost');
    expect(client?.state.asOf).toBe(Date.parse('2030-01-01T00:00:05Z'));
    body.push(frame('jobs.live', 'e', { since: '2030-01-01T00:01:00Z', reason: '' }));
    await settle();
    expect(client?.state.asOf).toBe(Date.parse('2030-01-01T00:00:10Z'));
    body.push(frame('pods.live', 'e', { since: '2030-01-01T00:01:00Z', reason: '' }));
    await settle();
    expect(status()).toBe('live');
  });

  test('what was stale on one connection is not held against the next', async () => {
    await connect();
    const body = server.last.accept('retry: 100\n\n', stale('jobs', '2030-01-01T00:00:05Z'));
    await settle();
    body.break();
    await pass(10_000);
    const next = server.last.accept(bookmark('e'));
    await settle();
    expect(status()).toBe('live');
    next.push(stale('pods', '2030-01-01T00:01:00Z') + frame('pods.live', 'e', { since: '2030-01-01T00:02:00Z', reason: '' }));
    await settle();
    expect(status()).toBe('live');
  });

  test('closing, by method or by signal, is final and leaves nothing running', async () => {
    const abort = new AbortController();
    await connect({ signal: abort.signal });
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    abort.abort();
    await pass(600_000);
    expect(status()).toBe('failed closed');
    expect(server.requests).toHaveLength(1);
    expect(server.last.aborted).toBe(true);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('closing from within an event stops the events of the same chunk', async () => {
    await connect({
      onEvent: (event) => {
        events.push(event);
        client?.close();
      },
    });
    server.last.accept(bookmark('e.jobs-1') + bookmark('e.jobs-2'));
    await settle();
    expect(events).toHaveLength(1);
    expect(client?.lastEventId).toBe('e.jobs-1'); // was taken
    expect(vi.getTimerCount()).toBe(0);
  });

  test.each<[string, Partial<ClientOptions>]>([
    ['onOpen', { onOpen: () => client?.close() }],
    ['onState, live', { onState: ({ status: now }) => now === 'live' && client?.close() }],
    ['onState, reconnecting', { onState: ({ reason: now }) => now === 'reconnecting' && client?.close() }],
  ])('closing from within %s is final, and leaves nothing running', async (_, options) => {
    await connect(options);
    server.last.accept(bookmark('e.jobs-5')).end();
    await pass(60_000);
    expect(status()).toBe('failed closed');
    expect(server.requests).toHaveLength(1);
    expect(vi.getTimerCount()).toBe(0);
  });

  test('a signal that is aborted already sends nothing', async () => {
    await connect({ signal: AbortSignal.abort() });
    expect(server.requests).toHaveLength(0);
    expect(status()).toBe('failed closed');
  });

  test('a caller whose state callback throws keeps its stream', async () => {
    const log = vi.spyOn(console, 'error').mockImplementation(() => undefined);
    await connect({
      onState: () => {
        throw new Error('boom');
      },
    });
    server.last.accept(bookmark('e.jobs-1'));
    await settle();
    expect(events).toHaveLength(1);
    client?.close();
    expect(log).toHaveBeenCalledTimes(2);
    log.mockRestore();
  });
});

test('a share that throws is asked once, and what it threw is told', async () => {
  vi.spyOn(console, 'error').mockImplementation(() => undefined);
  const share = vi.fn(() => {
    throw new Error('no such channel');
  });
  const states: ConnectionState[] = [];
  client = new Client({ url: '/stream?w0=/api/v1/pods', onEvent: () => undefined, onState: (state) => states.push(state), share, fetch: server.fetch });
  await vi.advanceTimersByTimeAsync(120_000);
  expect(share).toHaveBeenCalledTimes(1);
  expect(states.at(-1)).toMatchObject({ status: 'failed', error: { reason: 'callback', message: 'no such channel' } });
  vi.mocked(console.error).mockRestore();
});

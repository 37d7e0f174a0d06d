import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { ScriptedFetch } from '../../../mock/fetch.ts';
import type { ConnectionRequest, Stream } from '../connection.ts';

// A browser lets six connections of HTTP/1.1 through to a gateway. Streams may take four, whatever the tabs do, or nothing else would load:
// not even what renews a session.

let server: ScriptedFetch;
let protocol: string;
const streams: Stream[] = [];
const channels: BroadcastChannel[] = [];
const Channel = globalThis.BroadcastChannel;

beforeEach(() => {
  // Those of tabs end with them.
  vi.stubGlobal(
    'BroadcastChannel',
    class extends Channel {
      constructor(name: string) {
        super(name);
        channels.push(this);
      }
    },
  );
  server = new ScriptedFetch();
  protocol = 'http/1.1';
  vi.spyOn(performance, 'getEntriesByType').mockImplementation(() => [{ nextHopProtocol: protocol }] as unknown as PerformanceEntryList);
});

afterEach(() => {
  for (const stream of streams.splice(0)) stream.close();
  for (const channel of channels.splice(0)) channel.close();
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

const request = (): ConnectionRequest => ({
  url: 'http://gateway/stream', fetch: server.fetch, token: undefined, cookies: false, lastEventId: '', openTimeout: 5_000, silence: 60_000, onGap: () => undefined, doubted: false,
});

type Open = () => Promise<Stream>;

/** Tabs that have nothing in common but the browser. */
async function openTabs(count: number): Promise<Open[]> {
  const found: Open[] = [];
  for (let n = 0; n < count; n++) {
    vi.resetModules();
    const { openAlone } = await import('./alone.ts');
    found.push(async () => {
      const stream = await openAlone(request(), new AbortController().signal);
      streams.push(stream);
      return stream;
    });
  }
  return found;
}

/** Opens all of them at once; the gateway answers those that are let through. */
async function openAll(tabs: readonly Open[], answer = (n: number): void => void server.requests[n]?.accept(': here\n\n')): Promise<string[]> {
  const from = server.requests.length;
  const opening = Promise.allSettled(tabs.map((open) => open()));
  await vi.waitFor(() => expect(server.requests.length).toBeGreaterThan(from), { timeout: 60_000 });
  await new Promise((resolve) => setTimeout(resolve, 150));
  for (let n = from; n < server.requests.length; n++) answer(n);
  return (await opening).map((one) => (one.status === 'fulfilled' ? 'open' : String((one.reason as { reason?: string }).reason)));
}
const count = (outcomes: readonly string[], outcome: string): number => outcomes.filter((one) => one === outcome).length;

test('of tabs that are opened at once four have a stream, neither more nor fewer, and the others are told why', async () => {
  const outcomes = await openAll(await openTabs(9));
  expect([count(outcomes, 'open'), count(outcomes, 'tabs')]).toEqual([4, 5]);
});

test('several streams of one tab count as those of several', async () => {
  const [one, other] = await openTabs(2);
  if (!one || !other) throw new Error('no tabs');
  const outcomes = await openAll([one, one, one, other, other, one]);
  expect([count(outcomes, 'open'), count(outcomes, 'tabs')]).toEqual([4, 2]);
});

test('a place is free again when a stream ends, or never came to be', async () => {
  const tabs = await openTabs(6);
  expect(count(await openAll(tabs.slice(0, 4)), 'open')).toBe(4);
  expect(await tabs[4]?.().catch((error: unknown) => (error as { reason: string }).reason)).toBe('tabs');
  streams.shift()?.close();
  streams.shift()?.close();
  expect(count(await openAll(tabs.slice(4), (n) => server.requests[n]?.fail()), 'network')).toBe(2);
  expect(count(await openAll(tabs.slice(4)), 'open')).toBe(2);
});

test('where a connection carries any number of streams nobody is asked', async () => {
  protocol = 'h2';
  const outcomes = await openAll(await openTabs(7));
  expect(count(outcomes, 'open')).toBe(7);
});

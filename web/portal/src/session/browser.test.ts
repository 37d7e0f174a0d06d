import { afterEach, expect, test, vi } from 'vitest';
import { Session } from '@kubecast/sdk';
import { endBrowserSession, exchange, loginAddress, onBrowserSessionEnd, onOtherUser, sourceOf, Spare, tellUser } from './browser.ts';

const session = new Session({ fetch: () => Promise.resolve(new Response(null, { status: 204 })) });

afterEach(() => vi.unstubAllGlobals());

const returnTo = (pathname: string, hash: string): string | null =>
  new URLSearchParams(loginAddress(session, { pathname, hash }).split('?')[1]).get('returnTo');

test('one comes back to what was on screen', () => {
  expect(returnTo('/', '#jobs?ns=team-a&q=%C3%BC')).toBe('/#jobs?ns=team-a&q=%C3%BC');
});

test('what the gateway would refuse is not asked for', () => {
  for (const hash of [`#${'x'.repeat(2_000)}`, '#a b', '#\\']) expect(returnTo('/', hash)).toBe('/');
  expect(returnTo('//evil.example/', '')).toBe('/');
});

test('who signs out in one tab is signed out in the others', async () => {
  const told = new Promise<void>((resolve) => {
    const stop = onBrowserSessionEnd(() => {
      stop();
      resolve();
    });
  });
  await endBrowserSession(session);
  await told;
});

test('what is on screen is not shown to somebody else who has signed in in another tab', async () => {
  let username = 'mara';
  const shared = new Session({
    fetch: () => Promise.resolve(new Response(JSON.stringify({ login: true, username, expiresAt: new Date().toISOString(), renewable: true }))),
  });
  await shared.open();
  const reload = vi.fn();
  const source = sourceOf(shared, reload);
  await source('expiring');
  expect(reload).not.toHaveBeenCalled();
  username = 'bob';
  await source('expiring');
  expect(reload).toHaveBeenCalledOnce();
});

test('a tab is told at once when somebody else has signed in in another, and not when its own user has', async () => {
  const of = async (username: string): Promise<Session> => {
    const session = new Session({
      fetch: () => Promise.resolve(new Response(JSON.stringify({ login: true, username, expiresAt: new Date().toISOString(), renewable: true }))),
    });
    await session.open();
    return session;
  };
  const told: string[] = [];
  const stops = await Promise.all(['mara', 'carol'].map(async (name) => onOtherUser(() => told.push(name), await of(name))));
  tellUser(await of('mara'));
  tellUser(new Session({ fetch: () => Promise.reject(new Error('unused')) })); // nobody
  tellUser(await of('bob'));
  await vi.waitFor(() => expect(told.sort()).toEqual(['carol', 'carol', 'mara']), { timeout: 60_000 });
  for (const stop of stops) stop();
});

/** A gateway that takes the token `good`, and a browser that keeps its cookie, or does not. */
function gatewayWith(answer: { status?: number; keeps?: boolean; whose?: string }) {
  const posted: RequestInit[] = [];
  let there = false;
  const body = (username?: string): Response => new Response(JSON.stringify({ login: false, username, expiresAt: '2100-01-01T00:00:00Z', renewable: false }));
  const post = (address: unknown, init: RequestInit): Promise<Response> => {
    expect(address).toBe('/auth/session');
    posted.push(init);
    const { Authorization } = init.headers as Record<string, string>;
    const status = Authorization === 'Bearer good' ? (answer.status ?? 200) : 401;
    there ||= status === 200 && answer.keeps !== false;
    return Promise.resolve(status === 200 ? body('mara') : new Response('{}', { status }));
  };
  vi.stubGlobal('fetch', post);
  const shared = new Session({ fetch: (_, init) => {
    if (init?.method === 'POST' && answer.status === 0) return Promise.reject(new TypeError('offline'));
    return Promise.resolve(body(there ? (answer.whose ?? 'mara') : undefined));
  } });
  return { shared, posted, forget: () => (there = false) };
}

test.each([
  ['is kept', {}, true],
  ['is not kept, as over plain http', { keeps: false }, false],
  ["is somebody else's meanwhile", { whose: 'bob' }, false],
  ['does not fit into a cookie', { status: 431 }, false],
  ['is none of this gateway', { status: 404 }, false],
  ['cannot be had now', { status: 503 }, false],
] as const)('a token becomes the session of all tabs only where that %s', async (_, answer, want) => {
  const { shared, posted } = gatewayWith(answer);
  expect(await exchange('good', shared)).toBe(want);
  expect(posted).toHaveLength(1);
});

test('a token that is refused, and a gateway that is away, leave the token what it is', async () => {
  expect(await exchange('bad', gatewayWith({}).shared)).toBe(false);
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('offline')));
  expect(await exchange('good', session)).toBe(false);
});

test('a gateway that has forgotten its sessions is shown the token once more, but not once somebody signs out', async () => {
  const { shared, posted, forget } = gatewayWith({});
  const spare = new Spare('good');
  const source = sourceOf(shared, () => undefined, spare);
  await exchange('good', shared);
  const before = await source('connect');
  forget();
  const after = await source('refused');
  expect(after).toMatch(/^mara until \d+$/);
  expect(after).not.toBe(before); // or nobody would try it
  expect(posted).toHaveLength(2);

  forget();
  const ended = vi.fn();
  const stop = onBrowserSessionEnd(ended, spare);
  await endBrowserSession(session);
  await vi.waitFor(() => expect(ended).toHaveBeenCalledOnce(), { timeout: 60_000 });
  stop();
  expect(await source('refused')).toBeUndefined();
  expect(posted).toHaveLength(2);
});

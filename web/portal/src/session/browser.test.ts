import { afterEach, expect, test, vi } from 'vitest';
import { Session } from '@kubecast/sdk';
import { browserSession, endBrowserSession, exchange, loginAddress, onBrowserSessionEnd, onOtherUser, onSignIn, sourceOf, Spare, tellUser } from './browser.ts';

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

test('a page that says who has signed in does not take that for news, and ask the gateway once more', async () => {
  const heard: string[] = [];
  const others = new BroadcastChannel('kubecast.session.user');
  others.onmessage = ({ data }: MessageEvent<string>) => heard.push(data);
  const told = vi.fn();
  const stop = onSignIn(told);
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ login: true, username: 'mara' }))));
  await browserSession.open();
  tellUser();
  await vi.waitFor(() => expect(heard).toEqual(['mara']), { timeout: 60_000 });
  others.postMessage('bob'); // comes behind whatever was said before
  await vi.waitFor(() => expect(told).toHaveBeenCalled(), { timeout: 60_000 });
  expect(told).toHaveBeenCalledOnce();
  stop();
  others.close();
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
  ['cannot be had now', { status: 503 }, undefined],
] as const)('a token becomes the session of all tabs only where that %s', async (_, answer, want) => {
  const { shared, posted } = gatewayWith(answer);
  expect(await exchange('good', shared)).toBe(want);
  expect(posted).toHaveLength(1);
});

test('a token that is refused, and a gateway that is away, leave the token what it is', async () => {
  expect(await exchange('bad', gatewayWith({}).shared)).toBe(false);
  const { shared } = gatewayWith({});
  vi.stubGlobal('fetch', () => Promise.reject(new TypeError('offline')));
  expect(await exchange('good', shared)).toBe(undefined);
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

/** A browser whose cookie each Session of it knows; `away`: how the gateway answers an exchange. */
function browserWith(answers: { readonly exchange?: () => Promise<Response>; readonly looks?: () => boolean } = {}) {
  const browser = { cookie: true, exchanged: 0, signedOut: 0 };
  const info = (username?: string): Response => new Response(JSON.stringify({ login: false, username, expiresAt: '2100-01-01T00:00:00Z', renewable: false }));
  vi.stubGlobal('fetch', () => {
    browser.exchanged++;
    if (answers.exchange) return answers.exchange();
    browser.cookie = true;
    return Promise.resolve(info('mara'));
  });
  const tab = (): Session => new Session({ fetch: (path) => {
    if (new Request(path).url.endsWith('/auth/logout')) {
      browser.cookie = false;
      browser.signedOut++;
      return Promise.resolve(new Response(null, { status: 204 }));
    }
    return answers.looks?.() === false ? Promise.reject(new TypeError('offline')) : Promise.resolve(info(browser.cookie ? 'mara' : undefined));
  } });
  return { browser, tab, info };
}

test('who signs out while the token is exchanged once more stays signed out', async () => {
  let answer = (): void => undefined;
  const { browser, tab, info } = browserWith({ exchange: () => new Promise((resolve) => {
    answer = () => {
      browser.cookie = true;
      resolve(info('mara'));
    };
  }) });
  const [here, there] = [tab(), tab()];
  await here.look();
  const spare = new Spare('good');
  browser.cookie = false; // the gateway was started again
  const asked = sourceOf(here, () => undefined, spare)('refused');
  await vi.waitFor(() => expect(browser.exchanged).toBe(1), { timeout: 60_000 });
  spare.forget(); // as the other tab says when it begins
  await endBrowserSession(there);
  answer();
  expect([await asked, browser.cookie]).toEqual([undefined, false]);
});

test('a session of which it cannot be found out whether it is there is left to nobody', async () => {
  let looked = 0;
  const { browser, tab } = browserWith({ looks: () => looked++ === 0 });
  browser.cookie = false;
  expect(await exchange('good', tab())).toBe(undefined);
  expect([browser.exchanged, browser.signedOut, browser.cookie]).toEqual([1, 1, false]);
});

test('a token takes the place of no session that there is', async () => {
  const { browser, tab } = browserWith();
  expect([await exchange('good', tab()), browser.exchanged]).toEqual([false, 0]);
});

test('an end that comes near is not put off by the token that ends then, too', async () => {
  const { browser, tab } = browserWith();
  const here = tab();
  await here.look();
  await sourceOf(here, () => undefined, new Spare('good'))('expiring');
  expect(browser.exchanged).toBe(0);
});

test('a gateway that cannot exchange a token just now is asked again, and signs nobody out', async () => {
  const { browser, tab } = browserWith({ exchange: () => Promise.resolve(new Response('{}', { status: 503 })) });
  const here = tab();
  await here.look();
  browser.cookie = false;
  await expect(sourceOf(here, () => undefined, new Spare('good'))('refused')).rejects.toThrow('cannot be exchanged now');
});

test('a tab without the token takes the session that another one has begun anew', async () => {
  const { browser, tab } = browserWith();
  const [first, second] = [tab(), tab()];
  await Promise.all([first.look(), second.look()]);
  browser.cookie = false;
  await sourceOf(first, () => undefined, new Spare('good'))('refused');
  expect(await sourceOf(second, () => undefined)('refused')).toMatch(/^mara until \d+$/);
});

import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { Session, type Locks } from './session.ts';

interface Answer {
  readonly status?: number;
  readonly body?: unknown;
}

/** The gateway's side: what GET and POST /auth/session, and POST /auth/logout, answer. */
let answers: Record<string, Answer>;
let asked: string[];

const fetch = vi.fn<typeof globalThis.fetch>((input, init) => {
  const what = `${init?.method ?? 'GET'} ${input as string}`;
  asked.push(what);
  const { status = 200, body } = answers[what] ?? { status: 404 };
  // The cookie that comes with it is that of all pages.
  if (what === 'POST /auth/session' && status === 200) answers['GET /auth/session'] = { body };
  if (status === 0) return Promise.reject(new TypeError('fetch failed'));
  return Promise.resolve(new Response(status === 204 ? null : typeof body === 'string' ? body : JSON.stringify(body ?? {}), { status }));
});

const at = (minute: number): string => new Date(Date.UTC(2030, 0, 1, 0, minute)).toISOString();
const good = (minute: number): Answer => ({ body: { login: true, username: 'mara', expiresAt: at(minute), renewable: true } });
const ended: Answer = { body: { login: true, renewable: true } };

beforeEach(() => {
  answers = {};
  asked = [];
});

test('a gateway without sessions, or another server, is no failure', async () => {
  for (const answer of [{ status: 404 }, { status: 403 }, { body: '<!doctype html>' }, { body: 'null' }, { body: { login: 'yes', username: 7 } }]) {
    answers['GET /auth/session'] = answer;
    const session = new Session({ fetch });
    expect(await session.open()).toBe(false);
    expect(session.info).toEqual({ login: false, username: undefined, expiresAt: undefined, renewable: false });
  }
});

test('one that is away is', async () => {
  for (const status of [0, 500, 502, 429]) {
    answers['GET /auth/session'] = { status };
    await expect(new Session({ fetch }).open()).rejects.toThrow();
  }
});

test('a session that has ended is renewed before anything is shown', async () => {
  answers = { 'GET /auth/session': ended, 'POST /auth/session': good(5) };
  const session = new Session({ fetch });
  expect(await session.open()).toBe(true);
  expect(session.info.username).toBe('mara');
  answers = { 'GET /auth/session': ended, 'POST /auth/session': { status: 401 } };
  expect(await new Session({ fetch }).open()).toBe(false);
});

test('what is at hand will do to connect; before the end a new one is fetched', async () => {
  answers = { 'GET /auth/session': good(5), 'POST /auth/session': good(10) };
  const session = new Session({ fetch });
  await session.open();
  const before = await session.source('connect');
  expect(await session.source('connect')).toBe(before);
  expect(asked).toEqual(['GET /auth/session']);
  const after = await session.source('expiring');
  expect(after).not.toBe(before);
  expect(await session.source('connect')).toBe(after);
});

test('what another tab has renewed is not renewed again', async () => {
  answers = { 'GET /auth/session': good(5) };
  const session = new Session({ fetch });
  await session.open();
  const before = await session.source('connect');
  answers['GET /auth/session'] = good(10);
  expect(await session.source('expiring')).not.toBe(before);
  expect(asked).not.toContain('POST /auth/session');
});

/** As a browser's: one after the other. */
function queue(): Locks {
  let last: Promise<unknown> = Promise.resolve();
  return {
    request: (name, callback) => {
      expect(name).toBe('kubecast session');
      const turn = last.then(callback);
      last = turn.catch(() => undefined);
      return turn;
    },
  };
}

test('tabs renew one after the other, and callers in one tab share a renewal', async () => {
  answers = { 'GET /auth/session': good(5) };
  const locks = queue();
  const tabs = [1, 2, 3].map(() => new Session({ fetch, locks }));
  await Promise.all(tabs.map((tab) => tab.open()));
  answers['POST /auth/session'] = good(10);
  const renewed = await Promise.all(tabs.flatMap((tab) => [tab.source('expiring'), tab.source('expiring')]));
  expect(new Set(renewed).size).toBe(1);
  expect(asked.filter((what) => what === 'POST /auth/session')).toHaveLength(1);
});

test('while the provider is away the renewal fails and may be asked for again; once it refuses, there is none', async () => {
  answers = { 'GET /auth/session': good(5), 'POST /auth/session': { status: 503 } };
  const session = new Session({ fetch });
  await session.open();
  await expect(session.source('expiring')).rejects.toThrow('503');
  answers['GET /auth/session'] = ended;
  await expect(session.source('refused')).rejects.toThrow('503');
  answers['POST /auth/session'] = { status: 401 };
  expect(await session.source('refused')).toBeUndefined();
});

test('a session that is ended while another tab renews it stays ended', async () => {
  answers = { 'GET /auth/session': good(5), 'POST /auth/session': good(10), 'POST /auth/logout': { status: 204 } };
  const locks = queue();
  const [one, other] = [new Session({ fetch, locks }), new Session({ fetch, locks })];
  await one.open();
  const renewing = one.source('expiring');
  await Promise.all([other.end(), renewing]);
  expect(asked.slice(-2)).toEqual(['POST /auth/session', 'POST /auth/logout']);
});

test('ending tells where the provider is to end its own', async () => {
  answers = { 'POST /auth/logout': { body: { location: 'https://id.example.org/logout' } } };
  expect(await new Session({ fetch }).end()).toBe('https://id.example.org/logout');
  answers = { 'POST /auth/logout': { status: 204 } };
  expect(await new Session({ fetch }).end()).toBeUndefined();
  answers = { 'POST /auth/logout': { status: 503 } };
  await expect(new Session({ fetch }).end()).rejects.toThrow('503');
});

test('where one signs in knows where one was', () => {
  expect(new Session({ gateway: 'https://k.example' }).loginAddress('/#jobs?ns=a&q=ü')).toBe(
    'https://k.example/auth/login?returnTo=%2F%23jobs%3Fns%3Da%26q%3D%C3%BC',
  );
});

describe('requests that are never answered', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });
  const never = (): Promise<never> => new Promise(() => undefined);

  test('hold neither their tab nor the lock of all tabs', async () => {
    answers = { 'GET /auth/session': good(5) };
    const locks = queue();
    const stuck = new Session({ fetch: never, locks }).source('expiring').then(() => 'renewed', String);
    const other = new Session({ fetch, locks }).source('expiring');
    await vi.advanceTimersByTimeAsync(10_000);
    expect(await stuck).toMatch(/no word within 10 s/);
    expect(await other).toContain('mara');
  });

  test('nor does a tab that its browser has stopped while it held the lock', async () => {
    answers = { 'GET /auth/session': good(5) };
    const renewed = new Session({ fetch, locks: { request: never } }).source('expiring');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(await renewed).toContain('mara');
  });
});

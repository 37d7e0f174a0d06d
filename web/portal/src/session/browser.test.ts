import { expect, test, vi } from 'vitest';
import { Session } from '@kubecast/sdk';
import { endBrowserSession, loginAddress, onBrowserSessionEnd, onOtherUser, sourceOf, tellUser } from './browser.ts';

const session = new Session({ fetch: () => Promise.resolve(new Response(null, { status: 204 })) });
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

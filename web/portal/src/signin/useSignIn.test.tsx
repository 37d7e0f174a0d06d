import { act, type ReactNode } from 'react';
import { Session } from '@kubecast/sdk';
import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { ownName } from '../session/base.ts';
import { endBrowserSession, tellUser } from '../session/browser.ts';
import { storedToken, storeToken } from '../session/session.ts';
import { t } from '../session/texts.ts';
import { useSignIn } from './useSignIn.ts';

let page: Rendered;

afterEach(() => {
  page.unmount();
  vi.unstubAllGlobals();
});

function Shown(): ReactNode {
  const { session, looking } = useSignIn(undefined);
  return session ? 'signed in' : looking ? 'looking' : 'signed out';
}

test('a tab that is signed out comes back when somebody signs in in another tab, also the one who was signed out of it', async () => {
  const as: { username?: string } = {};
  const answer = (): Promise<Response> => Promise.resolve(new Response(JSON.stringify({ login: true, ...as, expiresAt: '2100-01-01T00:00:00Z', renewable: false })));
  vi.stubGlobal('fetch', answer);
  page = render(<Shown />);
  const says = (text: string): Promise<void> => vi.waitFor(async () => {
    await act(() => Promise.resolve());
    expect(page.element.textContent).toBe(text);
  }, { timeout: 60_000 });
  await says('signed out');
  const elsewhere = new Session({ fetch: answer });
  tellUser(elsewhere); // it has no session either
  as.username = 'mara';
  await elsewhere.open();
  tellUser(elsewhere);
  await says('signed in');
});

test('a tab in which somebody signs out does not say that they have done so in another one, and the other one does', async () => {
  const as: { username?: string } = { username: 'mara' };
  const heard: unknown[] = [];
  const listening = new BroadcastChannel(ownName('kubecast.session'));
  listening.onmessage = ({ data }) => heard.push(data);
  vi.stubGlobal('fetch', (_: string, init: RequestInit = {}) => {
    if (init.method === 'POST') delete as.username;
    return Promise.resolve(new Response(JSON.stringify({ login: false, ...as, expiresAt: '2100-01-01T00:00:00Z', renewable: false })));
  });
  page = render(<Leaving />);
  const says = (text: string): Promise<void> => vi.waitFor(async () => {
    await act(() => Promise.resolve());
    expect(page.element.querySelector('output')?.textContent).toBe(text);
  }, { timeout: 60_000 });
  await says('signed in');
  page.act(() => page.button('leave').click());
  await says('signed out');
  await vi.waitFor(() => expect(heard).toContain('ended'), { timeout: 60_000 });
  await act(() => new Promise((resolve) => { setTimeout(resolve); })); // what was posted before has come, too
  await says('signed out');

  as.username = 'mara';
  const elsewhere = new Session({});
  await elsewhere.open();
  tellUser(elsewhere);
  await says('signed in');
  await act(() => endBrowserSession(elsewhere));
  await says(`signed out: ${t.otherTab}`);
  listening.close();
});

function Leaving(): ReactNode {
  const { session, reason, looking, leave } = useSignIn(undefined);
  return (
    <>
      <button type="button" onClick={leave}>leave</button>
      <output>{session ? 'signed in' : looking ? 'looking' : `signed out${reason && `: ${reason}`}`}</output>
    </>
  );
}

test.each([
  ['is kept by the browser: nothing of it is left in this tab', 200, 'a session', undefined],
  ['is not to be had: it stays in this tab', 404, 'a token', 'a.b.c'],
])('a token is tried, and its session %s', async (_, status, said, kept) => {
  let there = false;
  const asked: string[] = [];
  vi.stubGlobal('fetch', (address: string, init: RequestInit = {}) => {
    if (!address.endsWith('/auth/session')) return Promise.reject(new TypeError('not here'));
    asked.push(init.method ?? '');
    there ||= init.method === 'POST' && status === 200;
    const body = { login: false, ...(there && { username: 'mara' }), expiresAt: '2100-01-01T00:00:00Z', renewable: false };
    return Promise.resolve(new Response(JSON.stringify(body), { status: init.method === 'POST' ? status : 200 }));
  });
  page = render(<Pasted />);
  const until = (what: () => void): Promise<void> => vi.waitFor(async () => {
    await act(() => Promise.resolve());
    what();
  }, { timeout: 60_000 });
  page.act(() => page.button('paste').click());
  expect(storedToken()).toBeUndefined(); // the gateway has not said yet whether it is any good
  page.act(() => page.button('accept').click());
  page.act(() => page.button('accept').click()); // that the gateway knows the user is told again and again
  await until(() => expect(page.element.querySelector('output')?.textContent).toBe(said));
  expect(storedToken()).toBe(kept);
  expect(asked.filter((method) => method === 'POST')).toHaveLength(1);
  storeToken(undefined);
});

function Pasted(): ReactNode {
  const { session, signIn, accept } = useSignIn(undefined);
  const said = !session?.accepted ? 'nobody' : session.token === undefined ? 'a session' : 'a token';
  return (
    <>
      <button type="button" onClick={() => signIn('a.b.c')}>paste</button>
      <button type="button" onClick={accept}>accept</button>
      <output>{said}</output>
    </>
  );
}

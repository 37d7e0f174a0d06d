import { act, type ReactNode } from 'react';
import { Session } from '@kubecast/sdk';
import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { tellUser } from '../session/browser.ts';
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

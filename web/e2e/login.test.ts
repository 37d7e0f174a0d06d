// Signing in at a real OpenID provider, which is of another site than the gateway, and what becomes of the session: in a
// real browser, with a real gateway on a real control plane. The provider's ID tokens are as short as the tests can wait for.

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { act, guidesBundle, openGuide, shownIn } from './support/guides.ts';
import { hasIssuer, Issuer, issuerPath } from './support/issuer.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({
  [chromiumPath]: hasChromium,
  [`${gatewayPath} and ${devclusterPath}`]: hasBinaries,
  [issuerPath]: hasIssuer,
});
const namespace = 'team-vision';
const seconds = 12; // that an ID token is good for

describe.skipIf(lacking !== undefined)(`signing in${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let issuer: Issuer;
  let kubecast: Kubecast;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    const starting = Kubecast.start(0, async (url) => {
      const redirectURL = `${url}/auth/callback`;
      issuer = await Issuer.start(redirectURL, `${seconds}s`);
      return {
        jwt: [{ issuer: issuer.url, audiences: ['kubecast'], claims: { username: 'email', groups: 'groups' }, trusted: 'same' }],
        oidcLogin: { issuer: issuer.url, clientID: 'kubecast', redirectURL },
      };
    });
    [browser, kubecast] = await Promise.all([launch(), starting]);
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop(), issuer?.stop()]);
  });

  beforeEach(async () => {
    ({ page, complaints } = await openPage(browser));
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    expect(said).toEqual([]);
  });

  const row = (name: string, on = page) => on.locator(`.table-body .table-row[data-name="${name}"]`);
  const status = (text: RegExp, on = page) => on.locator('.connection-label', { hasText: text }).waitFor();
  const signInLink = (on = page) => on.getByRole('link', { name: 'Sign in' });
  const giveName = async (on = page, name = 'mara@example.org') => {
    await on.locator('#login').fill(name);
    await on.locator('#password').fill('password');
    await on.locator('#submit-login').click();
  };
  const signIn = async (hash = '') => {
    await page.goto(`${kubecast.url}/${hash}`);
    await signInLink().click();
    await giveName();
    await status(/^Live$/);
  };
  /** Whose session the browser has, as a tab of its own sees it. */
  const username = async () => {
    const tab = await page.context().newPage();
    await tab.goto(kubecast.url);
    const name = await tab.evaluate(async () => ((await (await fetch('/auth/session')).json()) as { username?: string }).username);
    await tab.close();
    return name;
  };
  /** Notes what the page says of its connection, from now on. */
  const noteLabels = () =>
    page.evaluate(() => {
      const labels: string[] = [];
      Object.assign(window, { labels });
      const look = (): void => {
        const text = document.querySelector('.connection-label')?.textContent ?? 'nothing';
        if (text !== labels.at(-1)) labels.push(text);
      };
      look();
      new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
    });
  const notedLabels = () => page.evaluate(() => (window as unknown as { labels: string[] }).labels);

  test('from the sign-in to the view one came for, which stays live while tokens end, keys change and the provider is away', async () => {
    await signIn(`#jobs?ns=${namespace}&q=stays`);
    expect(new URL(page.url()).hash).toBe(`#jobs?ns=${namespace}&q=stays`);
    expect(new URL(page.url()).search).toBe('');
    expect(await page.locator('.account-name').textContent()).toBe('mara@example.org');
    // Nothing that a script could carry off.
    expect(await page.evaluate(() => [localStorage.length, sessionStorage.length, document.cookie])).toEqual([0, 0, '']);
    await page.evaluate(() => Object.assign(window, { sameDocument: true }));
    await kubecast.submit(namespace, 'stays', { start: 2, run: 600 });
    await row('stays').getByText('Running').waitFor();

    await noteLabels();
    const renewals: number[] = [];
    page.on('response', (response) => {
      if (response.request().method() === 'POST' && response.url().endsWith('/auth/session')) renewals.push(response.status());
    });
    await expect.poll(() => renewals.length).toBeGreaterThan(0);
    await issuer.hurt('rotate');
    const before = renewals.length;
    await expect.poll(() => renewals.length).toBeGreaterThan(before); // the first token has ended by now
    expect(new Set(renewals)).toEqual(new Set([200]));
    await kubecast.submit(namespace, 'stays-on', { start: 1, run: 600 });
    await row('stays-on').getByText('Running').waitFor();
    expect(await notedLabels()).toEqual(['Live']);

    await issuer.hurt('away');
    await status(/^Reconnecting, as of \d/);
    expect(await row('stays-on').textContent()).toContain('Running');
    expect(await signInLink().count()).toBe(0);
    await kubecast.submit(namespace, 'stays-missed', { start: 1, run: 600 });
    await issuer.hurt('back');
    await row('stays-missed').getByText('Running').waitFor();
    await status(/^Live$/);
    expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  });

  test('what the guide tells to write: a page sends who has no session to the provider, watches with it, and ends it', async () => {
    await (await guidesBundle())(page.context());
    await openGuide(page, kubecast.url);
    await act(page, 'signIn');
    await giveName();
    await page.waitForURL((url) => url.pathname === '/guide/'); // it comes back to where it was, by a redirect, which is not routed
    await openGuide(page, kubecast.url);
    await act(page, 'signIn');
    await expect.poll(() => shownIn(page)).toBe('mara@example.org');
    await act(page, 'signOut');
    await page.waitForURL((url) => url.pathname !== '/guide/');
    expect(await username()).toBeUndefined();
  });

  test('who is signed out at the provider is signed out here, at once and in all tabs', async () => {
    await signIn(`#jobs?ns=${namespace}`);
    const other = await page.context().newPage();
    await other.goto(`${kubecast.url}/#pods?ns=${namespace}`);
    await status(/^Live$/, other);
    await page.waitForTimeout(1_100); // the provider's clock counts seconds
    const ended = Date.now();
    await issuer.hurt('end');
    await Promise.all([signInLink().waitFor(), signInLink(other).waitFor()]);
    expect(Date.now() - ended).toBeLessThan(1_000 * seconds); // and not when the token ends
    expect(await username()).toBeUndefined();
    await page.waitForTimeout(1_100);
    await page.context().clearCookies({ name: 'dex_session' }); // Dex itself has not ended it
    await signInLink().click();
    await giveName();
    await status(/^Live$/);
  });

  test('tabs share the session, and who signs out is signed out in all of them and at the provider', async () => {
    await signIn();
    const other = await page.context().newPage();
    await other.goto(kubecast.url);
    await status(/^Live$/, other);
    await page.reload();
    await status(/^Live$/);
    await page.getByRole('button', { name: 'Sign out' }).click();
    await signInLink().waitFor();
    expect(page.url()).toBe(`${kubecast.url}/`);
    await other.getByRole('alert').getByText('signed out in another tab').waitFor();
    expect(await username()).toBeUndefined();
    expect((await page.context().cookies()).filter(({ name }) => name.includes('kubecast'))).toEqual([]);
    await signInLink().click();
    await page.locator('#password').waitFor(); // asked again, not let in by a session of the provider's
    await giveName();
    await status(/^Live$/);
  });

  test('somebody else who signs in in another tab is whose page all tabs are', async () => {
    await signIn(`#jobs?ns=${namespace}`);
    const second = await page.context().newPage();
    await second.goto(`${kubecast.url}/#pods?ns=${namespace}`);
    await status(/^Live$/, second);
    const third = await page.context().newPage();
    await page.context().clearCookies({ name: 'dex_session' }); // another provider's session would do as well
    await third.goto(`${kubecast.url}/auth/login`);
    await third.locator('#login').waitFor();
    // Not earlier: what is not renewed ends soon, and the page with it.
    for (const tab of [page, second]) {
      await tab.evaluate(() => Object.assign(window, { ofMara: true }));
      // A renewal would find out, too, but late: it is not answered before the page is another.
      let another = false;
      tab.once('framenavigated', () => (another = true));
      await tab.route('**/auth/session', (route) => (another ? route.continue() : undefined));
    }
    await giveName(third, 'bob@example.org');
    for (const tab of [third, page, second]) {
      await tab.locator('.account-name', { hasText: 'bob@example.org' }).waitFor();
      await status(/^Live$/, tab);
      expect(await tab.evaluate(() => 'ofMara' in window)).toBe(false);
    }
    expect(new URL(page.url()).hash).toBe(`#jobs?ns=${namespace}`);
    expect(new URL(second.url()).hash).toBe(`#pods?ns=${namespace}`);
  });

  test('an end of a login that is none signs nobody in, and takes no session away', async () => {
    const callbacks: string[] = [];
    page.on('request', (request) => {
      if (request.url().includes('/auth/callback?')) callbacks.push(request.url());
    });
    const failed = () => page.getByRole('heading', { name: 'Sign-in failed' }).waitFor();
    /** Goes to the provider, and no further. */
    const begin = async () => {
      const [request] = await Promise.all([
        page.waitForRequest((asked) => asked.url().startsWith(`${issuer.url}/auth`)),
        page.goto(`${kubecast.url}/auth/login`),
      ]);
      return new URL(request.url()).searchParams.get('state') ?? '';
    };

    await page.goto(`${kubecast.url}/auth/callback?code=x&state=${'A'.repeat(26)}`);
    await failed();
    await page.goto(`${kubecast.url}/auth/callback?code=guessed&state=${await begin()}`);
    await failed();
    expect(await username()).toBeUndefined();

    await signIn();
    const good = callbacks.at(-1) ?? '';
    await page.goto(good); // again
    await failed();
    // The same code, with the state of a login that has just begun: its nonce and its proof are another's.
    const mixed = new URL(good);
    await page.context().clearCookies({ name: 'dex_session' });
    mixed.searchParams.set('state', await begin());
    await page.goto(mixed.href);
    await failed();
    expect(await username()).toBe('mara@example.org');
    await page.getByRole('link', { name: 'To the portal' }).click();
    await status(/^Live$/);

    const away = await page.goto(`${kubecast.url}/auth/login?returnTo=${encodeURIComponent(`//${new URL(issuer.url).host}/`)}`);
    expect(away?.status()).toBe(400);
    await failed();
  });

  test('a page of another site can neither use the session nor end it, nor begin a login unseen', async () => {
    await signIn();
    const elsewhere = await anotherSite();
    try {
      const stranger = await page.context().newPage();
      await stranger.goto(elsewhere.url);
      const tried = await stranger.evaluate(async (gateway) => {
        const reads = (path: string, init: RequestInit): Promise<string> =>
          fetch(gateway + path, { credentials: 'include', ...init }).then(
            (response) => `${path}: ${response.type} ${response.status}`,
            () => 'refused',
          );
        const stream = new Promise<string>((resolve) => {
          const source = new EventSource(`${gateway}/stream?jobs=/apis/batch/v1/jobs`, { withCredentials: true });
          source.onopen = () => resolve('open');
          source.onerror = () => resolve('refused');
        });
        const image = new Promise<string>((resolve) => {
          const element = new Image();
          element.onload = element.onerror = () => resolve('refused');
          element.src = `${gateway}/auth/login`;
        });
        return Promise.all([reads('/auth/session', {}), reads('/apis/batch/v1/jobs', {}), reads('/auth/ticket', { method: 'POST', body: '{}' }), stream, image]);
      }, kubecast.url);
      expect(tried).toEqual(['refused', 'refused', 'refused', 'refused', 'refused']);
      const [answer] = await Promise.all([
        stranger.waitForResponse((response) => response.url().endsWith('/auth/logout')),
        stranger.evaluate((gateway) => {
          const form = Object.assign(document.createElement('form'), { method: 'post', action: `${gateway}/auth/logout` });
          document.body.append(form);
          form.submit();
        }, kubecast.url),
      ]);
      expect(answer.status()).toBe(403);
      expect(await username()).toBe('mara@example.org');
      expect((await page.context().cookies()).filter(({ name }) => name.includes('kubecast-login'))).toEqual([]);
    } finally {
      await elsewhere.stop();
    }
  });
});

/** A page at localhost, which is another site than 127.0.0.1. */
async function anotherSite(): Promise<{ readonly url: string; readonly stop: () => Promise<unknown> }> {
  const server: Server = createServer((_, response) => response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>Elsewhere</title>'));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://localhost:${(server.address() as AddressInfo).port}/`,
    stop: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

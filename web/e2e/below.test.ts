// The gateway and its portal below a path of a host that they share with others: a real nginx, which takes the path off or does not, a real
// OpenID provider, a real browser.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { hasIssuer, Issuer, issuerPath } from './support/issuer.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { hasNginx, Nginx, nginxPath } from './support/nginx.ts';
import { freeAddress, Program } from './support/processes.ts';
import { missing } from './support/skip.ts';

const lacking = missing({
  [chromiumPath]: hasChromium,
  [`${gatewayPath} and ${devclusterPath}`]: hasBinaries,
  [issuerPath]: hasIssuer,
  [nginxPath]: hasNginx,
});
const base = '/tools/kubecast';
const namespace = 'team-vision';
const stream = 'proxy_http_version 1.1;\nproxy_set_header Connection "";\nproxy_set_header Host $http_host;\n';
const neighbour = 'location / { default_type text/html; add_header X-Sent $http_cookie; return 200 "<title>Neighbour</title>"; }\n';

const ways = {
  'nginx leaves the path as it is': (gateway: string) => ({ basePath: base, location: `location ${base}/ {\nproxy_pass ${gateway};\n${stream}}\n` }),
  'nginx takes the path off, and says so': (gateway: string) => ({
    basePath: '',
    location: `location ${base}/ {\nproxy_pass ${gateway}/;\nproxy_set_header X-Forwarded-Prefix ${base};\n${stream}}\n`,
  }),
};

describe.skipIf(lacking !== undefined)(`below a path${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let issuer: Issuer;
  let kubecast: Kubecast;
  let address: string;

  beforeAll(async () => {
    address = await freeAddress();
    const redirectURL = `http://${address}${base}/auth/callback`;
    const starting = Kubecast.start(0, async () => {
      issuer = await Issuer.start(redirectURL, '300s');
      return {
        jwt: [{ issuer: issuer.url, audiences: ['kubecast'], claims: { username: 'email', groups: 'groups' }, trusted: 'same' }],
        oidcLogin: { issuer: issuer.url, clientID: 'kubecast', redirectURL },
      };
    });
    [browser, kubecast] = await Promise.all([launch(), starting]);
    await kubecast.submit(namespace, 'seen', { start: 1, run: 600 });
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop(), issuer?.stop()]);
  });

  describe.each(Object.entries(ways))('%s', (_, way) => {
    let nginx: Nginx;
    let page: Page;
    let complaints: string[];
    let asked: string[];

    beforeAll(async () => {
      const { basePath, location } = way(kubecast.url);
      await kubecast.configure({ basePath });
      nginx = await Nginx.start(address, location + neighbour);
    });
    afterAll(() => nginx?.stop());

    beforeEach(async () => {
      ({ page, complaints } = await openPage(browser));
      asked = [];
      page.on('request', (request) => {
        if (request.url().startsWith(nginx.url)) asked.push(new URL(request.url()).pathname);
      });
    });
    afterEach(async () => {
      const said = [...complaints];
      await closeContext(page.context());
      expect(said).toEqual([]);
      expect(asked.filter((path) => !path.startsWith(`${base}/`) && path !== base)).toEqual([]); // nothing of the neighbours'
    });

    const status = (text: RegExp) => page.locator('.connection-label', { hasText: text }).waitFor();
    const row = (name: string) => page.locator(`.table-body .table-row[data-name="${name}"]`);

    test('a token signs in, each page comes, and what happens is seen at once', async () => {
      const token = await kubecast.token('mara.lindqvist', ['platform']);
      await page.goto(`${nginx.url}${base}#token=${token}`); // nginx adds the slash
      await page.getByRole('button', { name: 'Sign in' }).click();
      await status(/^Live$/);
      expect(new URL(page.url()).pathname).toBe(`${base}/`);
      for (const name of ['Jobs', 'Pods', 'Overview', 'History']) {
        await page.getByRole('link', { name, exact: true }).first().click();
        await status(/^Live$/);
        expect(await page.locator('[role=alert]').count()).toBe(0);
      }
      await page.goto(`${nginx.url}${base}/#jobs?ns=${namespace}`);
      await row('seen').waitFor();
      const name = `live-${Date.now()}`;
      await kubecast.submit(namespace, name, { start: 1, run: 600 });
      await row(name).getByText('Running').waitFor();
      await row(name).getByRole('link').first().click();
      await page.getByRole('heading', { name }).waitFor();
      await status(/^Live$/);
      if (process.env.KUBECAST_SHOTS) await page.screenshot({ path: `${process.env.KUBECAST_SHOTS}/below-${Date.now()}.png` });
      // The session is for pages of this gateway only, and nothing of the token is kept beside it.
      expect(await page.evaluate(() => Object.keys(sessionStorage))).toEqual([]);
      expect((await page.context().cookies()).map(({ name, path }) => [name, path])).toEqual([['__Secure-kubecast', `${base}/`]]);
    });

    test('from the sign-in at the provider to the sign-out, and no neighbour is sent a cookie', async () => {
      await page.goto(`${nginx.url}${base}/#jobs?ns=${namespace}`);
      await page.getByRole('link', { name: 'Sign in' }).click();
      await page.locator('#login').fill('mara@example.org');
      await page.locator('#password').fill('password');
      await page.locator('#submit-login').click();
      await row('seen').waitFor();
      expect(page.url()).toBe(`${nginx.url}${base}/#jobs?ns=${namespace}`);
      expect(await page.locator('.account-name').textContent()).toBe('mara@example.org');
      const renewed = await page.evaluate(async (at) => (await fetch(`${at}/auth/session`, { method: 'POST' })).status, base);
      expect(renewed).toBe(200);
      const other = await page.context().newPage();
      const answer = await other.goto(`${nginx.url}/other/`);
      expect(answer?.headers()['x-sent'] ?? '').not.toContain('kubecast');
      await other.close();
      await page.waitForTimeout(1_100); // the provider's clock counts seconds
      await issuer.hurt('end'); // it tells the gateway, at the address below the path
      await page.getByRole('link', { name: 'Sign in' }).waitFor();
      await page.waitForTimeout(1_100);
      await page.getByRole('link', { name: 'Sign in' }).click(); // Dex itself has not ended it
      await row('seen').waitFor();
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('link', { name: 'Sign in' }).waitFor();
      expect(page.url()).toBe(`${nginx.url}${base}/`);
      expect((await page.context().cookies()).filter(({ name }) => name.includes('kubecast'))).toEqual([]);
      await page.goto(`${nginx.url}${base}/auth/callback?code=x&state=${'A'.repeat(26)}`);
      await page.getByRole('link', { name: 'To the portal' }).click();
      await page.getByRole('link', { name: 'Sign in' }).waitFor();
    });

    test('the command line goes by the same address', async () => {
      const token = await kubecast.token('mara.lindqvist', ['platform']);
      const watch = new Program('gateway watch', gatewayPath, ['watch', '--server', `${nginx.url}${base}/`, '--token', token, `/apis/batch/v1/namespaces/${namespace}/jobs`]);
      await watch.says(/added\s+Job team-vision\/seen/);
      await watch.stop();
    });
  });
});

// The portal on a gateway that speaks TLS itself, and so HTTP/2.

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });

describe.skipIf(lacking !== undefined)(`the portal over TLS${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start()]);
    await kubecast.speakTLS();
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
  });

  // Over HTTP/1.1 a browser opens six connections to a host, and the seventh tab's stream would wait for ever.
  test('seven tabs are live at once, and come back when the gateway is killed', async () => {
    const token = await kubecast.token('mara.lindqvist', ['platform']);
    const { page, complaints } = await openPage(browser, { ignoreHTTPSErrors: true });
    const tabs = [page];
    while (tabs.length < 7) tabs.push(await page.context().newPage());
    const all = <T>(each: (tab: typeof page) => Promise<T>) => Promise.all(tabs.map(each));
    const state = (text: RegExp) => all((tab) => tab.locator('.connection-label', { hasText: text }).waitFor());
    const seen = (name: string) => all((tab) => tab.locator(`.table-row[data-name="${name}"]`).waitFor());
    await all((tab) => tab.goto(`${kubecast.url}/${tab === page ? `#token=${token}` : ''}`).then(() => tab.locator('form, .signin-card').first().waitFor()));
    await page.getByRole('button', { name: 'Sign in' }).click(); // which lets all of them in
    await state(/^Live$/);
    await all((tab) => tab.getByRole('link', { name: 'Jobs', exact: true }).click());
    expect(await page.evaluate(() => (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).nextHopProtocol)).toBe('h2');
    await kubecast.submit('team-vision', 'over-tls', { start: 1, run: 60 });
    await seen('over-tls');
    await kubecast.killGateway();
    await state(/^Reconnecting/);
    await kubecast.submit('team-vision', 'meanwhile', { start: 1, run: 60 });
    await kubecast.startGateway();
    await seen('meanwhile');
    await state(/^Live$/);
    expect(complaints).toEqual([]);
    await closeContext(page.context());
  });
});

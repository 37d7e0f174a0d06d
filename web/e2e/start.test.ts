// A page that meets a gateway which has not the files of the one that sent the page, as while gateways are replaced: in a real browser.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { MockGateway } from '../mock/gateway.ts';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { isBuilt, mockToken, startMock } from './support/portal.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, 'the built portal': isBuilt });

describe.skipIf(lacking !== undefined)(`a page whose files are another gateway's${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let gateway: MockGateway;
  let page: Page;
  let pages: number;
  /** Whether a file is missing, as often as it is asked for. */
  let misses: (path: string) => boolean;

  beforeAll(async () => {
    [browser, gateway] = await Promise.all([launch(), startMock()]);
    const files = gateway.fallback;
    gateway.fallback = (request, response) => {
      const { pathname } = new URL(request.url ?? '/', 'http://portal');
      if (pathname === '/') pages++;
      if (misses(pathname)) response.writeHead(404, { 'Cache-Control': 'no-store' }).end();
      else files?.(request, response);
    };
  });
  afterAll(async () => {
    await Promise.allSettled([browser?.close(), gateway?.stop()]);
  });
  beforeEach(async () => {
    ({ page } = await openPage(browser));
    pages = 0;
  });
  afterEach(() => closeContext(page.context()));

  const isEntry = (path: string): boolean => /^\/assets\/index-[^/]+\.js$/.test(path);

  test('loads itself anew, once', async () => {
    let asked = 0;
    misses = (path) => isEntry(path) && asked++ === 0;
    const token = mockToken('mara');
    gateway.users.set(token, {});
    await page.goto(`${gateway.url}/#token=${token}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.locator('.connection-label', { hasText: /^Live$/ }).waitFor();
    expect([pages, asked]).toEqual([2, 2]);
  });

  test('says so in place of loading itself for ever', async () => {
    misses = isEntry;
    await page.goto(gateway.url);
    await page.getByRole('alert').getByText('could not be loaded').waitFor();
    await page.waitForTimeout(3_000); // in which it would load itself again
    expect(pages).toBe(2);
    misses = () => false;
    await page.getByRole('button', { name: 'Load it again' }).click();
    await page.locator('.signin, form').first().waitFor();
    expect(pages).toBe(3);
  });

  test('is loaded anew for its styles, too, and goes on without them', async () => {
    misses = (path) => path.endsWith('.css');
    await page.goto(gateway.url);
    await expect.poll(() => pages).toBe(2);
    await page.locator('form').first().waitFor();
    expect(await page.getByRole('alert').count()).toBe(0);
    expect(pages).toBe(2);
  });
});

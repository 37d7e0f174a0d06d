// Many tabs of one browser on one connection, over HTTP/1.1, where a browser opens six to a host.

import type { Browser, BrowserContext, Page, Request } from 'playwright-core';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch } from './support/chromium.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';
import { MockGateway } from '../mock/index.ts';
import { configMap, namespace, serviceWorker, tabsPage, workersPage, type Told } from './support/tabspage.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });

describe.skipIf(lacking !== undefined)(`tabs on one connection${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let token: string;
  let html: string;
  let context: BrowserContext;
  let streams: Set<Request>;

  beforeAll(async () => {
    [browser, kubecast, html] = await Promise.all([launch(), Kubecast.start(), tabsPage()]);
    token = await kubecast.token('mara.lindqvist', ['platform']);
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
  });

  beforeEach(async () => {
    context = await browser.newContext();
    context.setDefaultTimeout(60_000);
    streams = new Set();
    context.on('request', (request) => request.url().includes('/stream?') && streams.add(request));
    context.on('requestfinished', (request) => streams.delete(request));
    context.on('requestfailed', (request) => streams.delete(request));
    await context.route('**/tabs-page', (route) => route.fulfill({ contentType: 'text/html', body: html }));
    return () => closeContext(context);
  });

  const openTabs = async (count: number): Promise<Page[]> => {
    const pages: Page[] = [];
    while (pages.length < count) {
      const page = await context.newPage();
      await page.goto(`${kubecast.url}/tabs-page#token=${token}`);
      pages.push(page);
    }
    return pages;
  };
  const told = (page: Page): Promise<Told> => page.evaluate(() => (window as unknown as { told: () => Told }).told());
  /** Well below the 37 s after which silence alone finds that a stream is dead, so that a lost hand-over is a failure. */
  const handOver = 30_000;
  const seen = (pages: readonly Page[], row: string): Promise<unknown> =>
    Promise.all(pages.map((page) => page.waitForFunction((row) => (window as unknown as { told: () => Told }).told().rows.join() === row, row, { polling: 20, timeout: handOver })));
  const write = (n: string): Promise<string> => kubecast.kubectl(['apply', '-f', '-'], configMap(n));
  /** A tab that is gone does not say that its stream is. */
  const leaders = (pages: readonly Page[]): Page[] => [...streams].map((request) => request.frame().page()).filter((page) => pages.includes(page));

  test('a service worker has the stream in place of all pages, also over a cut', async () => {
    const gateway = new MockGateway();
    const files: Record<string, readonly [type: string, text: string]> = { '/page': ['text/html', workersPage], '/worker.js': ['text/javascript', await serviceWorker()] };
    gateway.fallback = ({ url = '' }, response) => {
      const [type, text] = files[url] ?? ['text/plain', ''];
      response.writeHead(type === 'text/plain' ? 404 : 200, { 'Content-Type': type }).end(text);
    };
    await gateway.start();
    try {
      const put = (name: string) => gateway.cluster.put('configmaps', { metadata: { name, namespace } });
      const pages = [await context.newPage(), await context.newPage()];
      const see = (rows: string) => Promise.all(pages.map((page) => page.waitForFunction((rows) => (window as unknown as { told?: string }).told === rows, rows, { polling: 20, timeout: 60_000 })));
      put('one');
      for (const page of pages) await page.goto(`${gateway.url}/page`);
      await see('live,one');
      put('two');
      await see('live,one,two');
      expect(gateway.streams.size).toBe(1);
      gateway.fault.cut();
      put('three');
      await see('live,one,two,three');
      expect([gateway.streams.size, gateway.requests.findLast(({ url }) => url.startsWith('/stream'))?.lastEventId]).toEqual([1, expect.stringMatching(/./)]);
    } finally {
      await gateway.stop();
    }
  });

  // On an idle machine they go on within half a second; the promise is three, and the time here is for a busy one.
  test('nine tabs are live on one stream, and whichever way its tab goes, the others go on', async () => {
    let pages = await openTabs(9);
    await write('first');
    await seen(pages, 'counted first');
    await expect.poll(() => leaders(pages).length).toBe(1);
    expect(await pages[0]?.evaluate(() => (performance.getEntriesByType('navigation')[0] as PerformanceNavigationTiming).nextHopProtocol)).not.toBe('h2');

    for (const way of ['closed', 'crashed', 'frozen'] as const) {
      const [first] = leaders(pages);
      if (!first) throw new Error('nobody leads');
      const rest = pages.filter((page) => page !== first);
      const devtools = await context.newCDPSession(first);
      if (way === 'closed') await first.close();
      else if (way === 'crashed') void devtools.send('Page.crash').catch(() => undefined);
      else await devtools.send('Page.setWebLifecycleState', { state: 'frozen' });
      await write(way);
      await seen(rest, `counted ${way}`);
      if (way === 'frozen') {
        await write('thawed');
        await devtools.send('Page.setWebLifecycleState', { state: 'active' });
        await seen(pages, 'counted thawed');
      } else pages = rest;
      await expect.poll(async () => (await Promise.all(pages.map(told))).map(({ status }) => status)).toEqual(pages.map(() => 'live'));
      await expect.poll(() => leaders(pages).length).toBe(1);
    }

    await kubecast.killGateway();
    await write('meanwhile');
    await kubecast.startGateway();
    await seen(pages, 'counted meanwhile');
    await expect.poll(() => leaders(pages).length).toBe(1);
  });
});

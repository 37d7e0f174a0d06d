// Drives Chromium's EventSource, and event-source-polyfill, which is made for browsers, in a page:
// node chromium.mjs ADDRESS-OF-THE-TEST PROGRAM PAGE
//
// The page is of another origin than the gateway, as a portal's may be.
import { fileURLToPath } from 'node:url';

import { chromium } from 'playwright-core';

import { serve } from './link.mjs';
import { standard } from './standard.mjs';

const [address, executablePath, origin] = process.argv.slice(2);
const browser = await chromium.launch({
  executablePath,
  args: [
    '--no-sandbox',
    '--disable-gpu',
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ],
});
const page = await browser.newPage();
const reports = new Map();
await page.exposeFunction('report', (stream, what) => reports.get(stream)?.(what));
await page.goto(origin);
await page.addScriptTag({ path: fileURLToPath(import.meta.resolve('event-source-polyfill')) });
await page.evaluate(`
  globalThis.streams = {};
  globalThis.clients = {
    chromium: (${standard})(EventSource),
    'event-source-polyfill': (${standard})(EventSourcePolyfill),
  };
`);

await serve(address, async ({ open, client, url }, report) => {
  reports.set(open, report);
  await page.evaluate(([stream, client, url]) => {
    streams[stream] = clients[client](url, (what) => report(stream, what));
  }, [open, client, url]);
  return async () => {
    reports.delete(open);
    await page.evaluate((stream) => streams[stream](), open);
  };
});
await browser.close();

// A browser for the tests, and a page that remembers what it complained about.

import { existsSync } from 'node:fs';
import { chromium, type Browser, type BrowserContext, type BrowserContextOptions, type Page } from 'playwright-core';

export const chromiumPath = process.env.KUBECAST_CHROMIUM ?? '/usr/bin/chromium';

export const hasChromium = existsSync(chromiumPath);

export function launch(): Promise<Browser> {
  const quiet = ['--disable-background-networking', '--disable-component-update', '--disable-sync', '--no-first-run'];
  return chromium.launch({
    executablePath: chromiumPath,
    // As root, as in most containers, Chromium's own sandbox does not start.
    args: ['--no-sandbox', '--disable-gpu', '--disable-quic', ...quiet],
  });
}

export interface WatchedPage {
  readonly page: Page;
  /** Errors and warnings of the page, in order. What the network says of a lost gateway is not among them. */
  readonly complaints: string[];
}

// Chromium itself logs each failed request; while a gateway is away, or a token is wrong, that is right.
const network = 'Failed to load resource: ';

export async function openPage(browser: Browser, options: BrowserContextOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({ viewport: { width: 1440, height: 860 }, ...options });
  context.setDefaultTimeout(60_000);
  // What the content security policy forbids is an error to nobody but the page that wanted it.
  await context.addInitScript(() => {
    document.addEventListener('securitypolicyviolation', (event) => {
      console.error(`the policy forbids: ${event.effectiveDirective} ${event.blockedURI} at ${event.sourceFile}:${event.lineNumber}`);
    });
  });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('console', (message) => {
    const bad = message.type() === 'error' || message.type() === 'warning';
    if (bad && !message.text().startsWith(network)) complaints.push(message.text());
  });
  return { page, complaints };
}

/**
 * Closes all pages of a context. Whether Chromium answers in time is asked by no test: a context that it does not close
 * is named, and ends with the browser.
 */
export async function closeContext(context: BrowserContext): Promise<void> {
  let giveUp: NodeJS.Timeout | undefined;
  const late = new Promise<void>((resolve) => {
    giveUp = setTimeout(() => {
      const pages = context.pages().map((page) => page.url());
      console.error(`Chromium has not closed a context in 20 s: ${pages.join(' ')}`);
      resolve();
    }, 20_000);
  });
  await Promise.race([context.close(), late]);
  clearTimeout(giveUp);
}

// The SDK's devtools in the built portal, under its strict content security policy: loaded when asked for, and used by keys.

import { mkdir } from 'node:fs/promises';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { isBuilt, mockToken, startMock } from './support/portal.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, 'the built portal (npm run build)': isBuilt });

describe.skipIf(lacking !== undefined)(`the devtools${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await launch();
  });
  afterAll(() => browser.close());

  test('not a byte of them is loaded before a key asks; then they show the stream, break it and hide its token', async () => {
    const gateway = await startMock();
    const mara = mockToken('mara');
    gateway.users.set(mara, {});
    gateway.cluster.put('namespaces', { metadata: { name: 'team-a' } });
    gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a', annotations: { 'kubecast.io/owner': `Bearer ${mara}` } } }); // a field that the portal asks for
    const { page, complaints } = await openPage(browser, { colorScheme: 'light' });
    try {
      const scripts: string[] = [];
      page.on('response', (response) => {
        if (response.url().endsWith('.js')) scripts.push(response.url());
      });
      await page.goto(`${gateway.url}/#jobs`);
      await page.getByLabel('Token').fill(mara);
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('.table-row[data-name="train"]').waitFor();
      const before = scripts.length;

      await page.keyboard.press('Shift+D');
      const panel = page.locator('kubecast-devtools');
      await panel.waitFor();
      expect(scripts.length).toBeGreaterThan(before);
      await panel.getByRole('table', { name: 'Streams' }).getByRole('cell', { name: 'open', exact: true }).first().waitFor();

      // By keys alone: the panel has the focus, its first button is the next.
      await page.keyboard.press('Tab');
      expect(await panel.evaluate((host) => host.shadowRoot?.activeElement?.textContent)).toBe('cut');
      await page.keyboard.press('Enter');
      await panel.getByRole('table', { name: 'Streams' }).getByText('fault: cut').first().waitFor();
      await page.keyboard.press('Tab');
      await page.keyboard.press('Enter');
      await panel.getByRole('table', { name: 'Resets' }).getByText('expired').first().waitFor();
      const job = panel.locator('details', { hasText: 'train' }).first();
      await job.locator('summary').press('Enter');
      expect(await job.locator('pre').textContent()).toContain('•••');
      expect(await panel.evaluate((host) => host.shadowRoot?.textContent)).not.toContain(mara);

      const stale = panel.getByRole('button', { name: 'stale' });
      await stale.press('Enter');
      await panel.getByRole('status').getByText('stale: unreachable').waitFor();
      expect(await stale.getAttribute('aria-pressed')).toBe('true');
      if (process.env.KUBECAST_SCREENSHOT) {
        const output = new URL('output/', import.meta.url);
        await mkdir(output, { recursive: true });
        for (const look of ['light', 'dark', 'forced'] as const) {
          await page.emulateMedia({ colorScheme: look === 'dark' ? 'dark' : 'light', forcedColors: look === 'forced' ? 'active' : 'none' });
          await page.screenshot({ path: new URL(`devtools-${look}.png`, output).pathname });
        }
      }

      // Closing them ends the faults.
      await page.keyboard.press('Escape');
      await panel.waitFor({ state: 'detached' });
      await page.locator('.connection-label', { hasText: 'Live' }).waitFor();

      // The address opens them, too.
      await page.goto(`${gateway.url}/?devtools#jobs`);
      await panel.getByRole('table', { name: 'Watches' }).getByText('live').first().waitFor();
      expect(complaints).toEqual([]);
    } finally {
      await closeContext(page.context());
      await gateway.stop();
    }
  });
});

// What three people ask of the portal, of a world that is scripted: somebody who trains models, an administrator of 20,000 pods, somebody
// with a keyboard alone. Each answer is counted in clicks. The gateway is the real one.

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { gatewayPath, hasGateway } from './support/gateway.ts';
import { days, failed, hours, mara, ScriptedWorld, team } from './support/scriptedworld.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [gatewayPath]: hasGateway });
const why = 'main was OOM-killed (exit 137) on node-1';
const minutes = hours / 60;

describe.skipIf(lacking !== undefined)(`a scripted world${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let world: ScriptedWorld;
  let token: string;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    [browser, world] = await Promise.all([launch(), ScriptedWorld.start()]);
    world.runs('sweep', { ago: 6 * days + 2 * hours });
    world.ends('sweep', 1, 'Error', { ago: 6 * days, ran: 2 * hours });
    await world.startGateway();
    token = await world.gateway.token(mara, ['platform']);
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), world?.stop()]);
  });

  beforeEach(async () => {
    ({ page, complaints } = await openPage(browser, { locale: 'en-GB', reducedMotion: 'reduce', viewport: { width: 1280, height: 900 } }));
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    expect(said).toEqual([]);
  });

  const open = async (hash: string): Promise<void> => {
    await page.context().addInitScript((kept) => sessionStorage.setItem('kubecast.token', kept), token);
    await page.goto(`${world.gateway.url}/${hash}`);
    await page.locator('.connection-live').waitFor();
  };
  const mine = (name: string) => page.locator('.mine li', { has: page.getByRole('link', { name, exact: true }) });
  const logLines = () => page.locator('.log-line .log-text').allTextContents();

  test('a job runs out of memory while somebody looks, and its pod tells after it: why is on Mine without a click, its last lines are one click away', async () => {
    await open('#mine');
    world.runs('llama-finetune', { ago: 10 * minutes });
    await mine('llama-finetune').getByText('Running').waitFor();
    world.api.write(team, 'llama-finetune-a', 'main', 'step 1 loss 1.99', 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB');
    world.now('jobs', team, 'llama-finetune', failed(0, 10 * minutes));
    await mine('llama-finetune').getByText('BackoffLimitExceeded').waitFor();
    world.ends('llama-finetune', 137, 'OOMKilled', { ran: 10 * minutes });
    await mine('llama-finetune').getByText(why).waitFor();
    await mine('llama-finetune').getByRole('link').click();
    await page.locator('.job-why').getByText(why).waitFor();
    await expect.poll(logLines).toContain('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB');
  });

  test('a progress bar that is written over and over is one line, of what a terminal would show, as it moves', async () => {
    world.runs('download', { ago: minutes });
    const bar = (percent: number): string => `\rDownloading: ${percent}%|${'█'.repeat(percent / 10).padEnd(10)}| ${percent * 10}/1000`;
    world.api.write(team, 'download-a', 'main', '\u001b[32mINFO\u001b[0m fetching', [0, 10, 20].map(bar).join(''));
    await open(`#jobs/${team}/download`);
    await expect.poll(logLines).toEqual(['INFO fetching', 'Downloading: 20%|██        | 200/1000']);
    world.api.write(team, 'download-a', 'main', [90, 100].map(bar).join(''));
    await expect.poll(async () => (await logLines()).at(-1)).toBe('Downloading: 100%|██████████| 1000/1000');
  });
});

// The whole of it: a real control plane, the real gateway with the portal inside, a real browser.

import { parse as parseCsv } from 'csv-parse/sync';
import { mkdir, readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { noticesOf, recordNotices } from './support/notices.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const namespace = 'team-vision';
// For a picture the cluster has to look like one that is used.
const picture = Boolean(process.env.KUBECAST_SCREENSHOT);

describe.skipIf(lacking !== undefined)(`the portal on a real gateway${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let token: string;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start(picture ? 1.5 : 0)]);
    token = await kubecast.token('mara.lindqvist', ['platform']);
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
  });

  beforeEach(async () => {
    ({ page, complaints } = await openPage(browser));
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    expect(said).toEqual([]);
  });

  const row = (name: string) => page.locator(`.table-body .table-row[data-name="${name}"]`);
  // A client that was refused just before its gateway was back waits for up to 30 s.
  const status = (text: RegExp) => page.locator('.connection-label', { hasText: text }).waitFor();
  const open = async (hash = '') => {
    await page.goto(`${kubecast.url}/#token=${token}`);
    await page.getByRole('button', { name: 'Sign in' }).click();
    await status(/^Live$/);
    await page.evaluate((view) => (location.hash = view), hash);
  };

  test('the gateway is killed in the middle: the page comes back by itself and shows what it missed', async () => {
    await open('#jobs?q=during');
    await page.evaluate(() => Object.assign(window, { sameDocument: true }));
    await kubecast.submit(namespace, 'during-1', { start: 0, run: 600 });
    await row('during-1').getByText('Running').waitFor();
    await kubecast.submit(namespace, 'during-gone', { start: 60, run: 60 });
    await row('during-gone').getByText('Pending').waitFor();

    await kubecast.killGateway();
    await status(/^Reconnecting, as of \d/);
    expect(await row('during-1').textContent()).toContain('Running'); // old, and told to be
    await kubecast.submit(namespace, 'during-2', { start: 0, run: 0 });
    await kubecast.now('end', namespace, 'during-1');
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'during-gone', '--wait=true']);
    await Promise.all(['during-1', 'during-2'].map((name) => kubecast.waitComplete(namespace, name)));

    const resumed = page.waitForRequest((request) => request.url().includes('/stream?') && request.headers()['last-event-id'] !== undefined);
    await kubecast.startGateway();
    await resumed;
    await row('during-2').getByText('Succeeded').waitFor();
    await row('during-1').getByText('Succeeded').waitFor();
    await row('during-gone').waitFor({ state: 'detached' });
    await status(/^Live$/);
    await kubecast.submit(namespace, 'during-3', { start: 1, run: 1 });
    await row('during-3').getByText('Succeeded').waitFor();
    expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
  });

  test('what a table shows can be taken away, and is read by those who read such files', async () => {
    await kubecast.submit(namespace, 'taken', { start: 1, run: 1 });
    await open('#jobs?q=taken');
    await row('taken').getByText('Succeeded').waitFor();
    const take = async (form: string): Promise<string> => {
      const downloaded = page.waitForEvent('download');
      await page.locator('summary', { hasText: 'Export' }).click();
      await page.getByRole('button', { name: form }).click();
      return (await downloaded).path();
    };
    const [header, ...lines] = parseCsv(await readFile(await take('CSV')), { bom: true });
    expect(header?.slice(0, 3)).toEqual(['Name', 'Namespace', 'State']);
    expect(lines.map((line) => line.slice(0, 3))).toEqual([['taken', namespace, 'Succeeded']]);
    const read = await kubecast.kubectl(['get', '--output', 'name', '--filename', await take('YAML')]);
    expect(read.trim()).toBe('job.batch/taken');
  });

  test("a job's page has its states, each line once, and its end, over a gateway that is killed; what it was stays when it is gone", async () => {
    await open('#jobs?q=paged');
    await kubecast.submit(namespace, 'paged', { start: 2, run: 600 });
    await row('paged').getByText('Running').waitFor();
    await row('paged').locator('.column-state').click();
    await page.getByRole('heading', { name: 'paged' }).waitFor();
    const states = () => page.locator('.timeline li').evaluateAll((items) => items.map((item) => item.getAttribute('data-state')).reverse());
    const passed = ['Submitted', 'Pending', 'Running'];
    await expect.poll(states).toEqual(passed);
    await page.locator('.log-line').nth(5).waitFor();

    await kubecast.killGateway();
    await page.getByRole('status').getByText(/^What is shown is as of \d.* The gateway cannot be reached\.$/).waitFor();
    await kubecast.now('end', namespace, 'paged');
    await kubecast.waitComplete(namespace, 'paged');
    await kubecast.startGateway();
    await page.getByRole('button', { name: 'Try now' }).click({ timeout: 2_000 }).catch(() => undefined); // unless it has just done so
    await status(/^Live$/);
    await expect.poll(states).toEqual([...passed, 'Succeeded']);
    await page.locator('.log-ended').waitFor();
    const printed = await kubecast.kubectl(['logs', '--namespace', namespace, 'job/paged']);
    const shown = () => page.locator('.log-line.log-line:has(time)').evaluateAll((lines) => lines.map((line) => (line.textContent ?? '').replace(/^\S+ /, '')));
    const lines = printed.trimEnd().split('\n');
    await page.setViewportSize({ width: 1280, height: 1_600 + 18 * lines.length }); // so that all of them are in the document, however long it ran
    await expect.poll(shown).toEqual(lines);
    const downloaded = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Download' }).click();
    expect(await readFile(await (await downloaded).path(), 'utf8')).toBe(printed);
    await page.getByLabel('Search in the log').fill('LOSS');
    await page.locator('mark', { hasText: 'loss' }).first().waitFor();

    for (const [tab, text] of [['Pods', /^paged-/], ['Events', 'SuccessfulCreate'], ['YAML', 'kind: Job']] as const) {
      await page.getByRole('button', { name: tab }).click();
      await page.locator('.job-main').getByText(text).first().waitFor();
    }
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'paged', '--wait=true']);
    await page.getByText('This job is gone. Its history is kept.').waitFor();
    await expect.poll(states).toEqual([...passed, 'Succeeded', 'Deleted']);
    await page.reload();
    await page.getByText('This job is gone. Its history is kept.').waitFor();
    await page.goBack();
    await page.locator('.table-empty').waitFor();
    expect(page.url()).toContain('#jobs?q=paged');
    await status(/^Live$/);
  });

  test("a job is on its user's own page from the line that submits it to its end, of which they are told once, wherever they look", async () => {
    const everybody = token;
    const hers = (token = await kubecast.token('ines.carvalho', ['platform']));
    await recordNotices(page.context());
    await open();
    token = everybody;
    const line = await page.locator('.mine-howto .copied code', { hasText: 'kubecast.io/owner=ines.carvalho' }).textContent();
    await page.locator('.bell-button').click();
    await page.getByRole('button', { name: 'Settings' }).click();
    await page.getByRole('button', { name: 'Show notices in this browser, too' }).click();
    await page.getByRole('button', { name: 'Stop showing notices' }).waitFor();
    await page.keyboard.press('Escape');
    const tab = await page.context().newPage();
    const elsewhere = await openPage(browser);
    for (const [other, hash] of [[tab, '#pods'], [elsewhere.page, '#jobs']] as const) {
      await other.goto(`${kubecast.url}/#token=${hers}`);
      await other.getByRole('button', { name: 'Sign in' }).click();
      await other.locator('.bell-button').waitFor();
      await other.evaluate((view) => (location.hash = view), hash);
    }
    const agree = (label: string) =>
      expect.poll(() => Promise.all([page, tab, elsewhere.page].map((one) => one.locator('.bell-button').getAttribute('aria-label'))), { interval: 50 }).toEqual([label, label, label]);
    await agree('Inbox');

    await kubecast.shell((line ?? '').replace('sleep 20', 'sleep 2'));
    await kubecast.submit(namespace, 'goes-on', { start: 2, run: 600, owner: 'ines.carvalho' });
    const section = (title: string, name = 'hello') => page.locator(`section[aria-label="${title}"] li[data-name=${name}]`);
    await section('Running', 'goes-on').waitFor();
    await section('Ended since you last looked').getByText('Succeeded', { exact: true }).waitFor();
    await agree('Inbox, 1 unread');
    await expect.poll(async () => [...(await noticesOf(page)), ...(await noticesOf(tab))]).toHaveLength(1);
    await tab.locator('.bell-button').click();
    await tab.getByRole('dialog').getByRole('link', { name: /^hello/ }).click();
    await tab.getByRole('heading', { name: 'hello', exact: true }).waitFor();
    await agree('Inbox');
    await section('Ended in the last week').waitFor();
    expect([...(await noticesOf(page)), ...(await noticesOf(tab))]).toEqual([expect.stringMatching(/^hello succeeded/)]);
    await closeContext(elsewhere.page.context());
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'goes-on', '--wait=false']);
  });

  test('of a job with many pods the log of one is followed, and of another as it is chosen', async () => {
    await kubecast.submit(namespace, 'many', { start: 1, run: 600, pods: 20 });
    await open(`#jobs/${namespace}/many`);
    const choice = page.getByLabel('Pod', { exact: true });
    await choice.waitFor();
    await expect.poll(() => choice.locator('option').count()).toBe(20);
    const other = (await choice.locator('option').last().getAttribute('value')) ?? '';
    await choice.selectOption(other);
    await page.locator('.log-line', { hasText: `starts on ${other}` }).waitFor();
    await status(/^Live$/);
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'many', '--wait=false']);
  });

  test('a wrong token is refused with a reason, the right one is let in', async () => {
    await page.goto(kubecast.url);
    await page.getByLabel('Token').fill('not.a.token');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('does not accept this token').waitFor();
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await status(/^Live$/);
    expect(await page.locator('.account-name').textContent()).toBe('mara.lindqvist');
    await page.getByRole('button', { name: 'Sign out' }).click();
    await page.getByLabel('Token').waitFor();
    await page.reload();
    await page.getByLabel('Token').waitFor();
  });

  test('what gets into the page can run nothing, and tell nobody', async () => {
    await open();
    expect(complaints).toEqual([]);
    const outcome = await page.evaluate(async () => {
      const tried = { script: '', markup: '', call: '', image: '', ran: false };
      const inline = document.createElement('script');
      try {
        inline.text = 'window.ran = true';
        document.body.append(inline);
      } catch (error) {
        tried.script = String(error);
      }
      try {
        document.body.insertAdjacentHTML('beforeend', '<img src="x" onerror="window.ran = true">');
      } catch (error) {
        tried.markup = String(error);
      }
      const style = document.createElement('style');
      style.textContent = 'body { background: url("https://elsewhere.example/told") }';
      document.head.append(style);
      tried.call = await fetch('https://elsewhere.example/told').then(() => 'answered', String);
      const image = new Image();
      tried.image = await new Promise<string>((resolve) => {
        image.onload = () => resolve('loaded');
        image.onerror = () => resolve('refused');
        image.src = 'https://elsewhere.example/told';
      });
      const frame = document.createElement('iframe');
      frame.src = '/';
      document.body.append(frame);
      tried.ran = 'ran' in window;
      return tried;
    });
    expect(outcome).toMatchObject({ ran: false, image: 'refused' });
    for (const text of [outcome.script, outcome.markup, outcome.call]) expect(text).toMatch(/TypeError/);
    // Each of them is complained of, and nothing is said after the last.
    const directives = ['require-trusted-types-for', 'style-src', 'connect-src', 'img-src', 'frame-src'];
    await expect.poll(() => directives.filter((one) => !complaints.join().includes(`the policy forbids: ${one}`))).toEqual([]);
    await page.waitForTimeout(200);
    await page.evaluate(() => console.error('that was all'));
    await expect.poll(() => complaints.at(-1)).toBe('that was all');
    complaints.length = 0;
  });

  test('who may see one team sees that team, and follows the bindings that come and go', async () => {
    const everybody = token;
    const other = 'team-nlp';
    token = await kubecast.token('bob', [namespace]);
    await kubecast.submit(namespace, 'of-the-team', { start: 1, run: 600 });
    await kubecast.submit(other, 'of-another-team', { start: 1, run: 600 });
    await open('#jobs?q=of-');
    await row('of-the-team').getByText('Running').waitFor();
    const choices = () => page.getByLabel('Namespace').locator('option').allTextContents();
    const shown = () => page.locator('.table-body .table-row').evaluateAll((rows) => rows.map((item) => item.getAttribute('data-name')).sort());
    await expect.poll(choices).toEqual(['Your namespace', namespace]);
    expect(await shown()).toEqual(['of-the-team']);

    await kubecast.kubectl(['create', 'rolebinding', '--namespace', other, 'guest', '--clusterrole=team-viewer', '--user=bob']);
    await row('of-another-team').getByText('Running').waitFor();
    await expect.poll(choices).toEqual(['Your 2 namespaces', other, namespace]);

    await kubecast.kubectl(['delete', 'rolebinding', '--namespace', other, 'guest']);
    await row('of-another-team').waitFor({ state: 'detached' });
    await expect.poll(choices).toEqual(['Your namespace', namespace]);
    expect(await shown()).toEqual(['of-the-team']);
    await status(/^Live$/);
    await page.evaluate((name) => location.assign(`#jobs?ns=${name}`), other);
    await page.getByRole('heading', { name: `You may not see jobs in ${other}` }).waitFor();
    expect(await row('of-another-team').count()).toBe(0);
    await expect.poll(choices).toEqual(['Your namespace', other, namespace]);
    await page.getByLabel('Namespace').selectOption('');
    await row('of-the-team').waitFor();
    await kubecast.kubectl(['delete', 'job', '--namespace', other, 'of-another-team', '--wait=false']);
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'of-the-team', '--wait=false']);
    token = everybody;
  });

  if (picture) test('pictures for the documentation', async () => {
    await page.setViewportSize({ width: 1280, height: 720 });
    await open('#jobs');
    await page.locator('.chip', { hasText: 'Retrying' }).waitFor({ timeout: 120_000 });
    await page.waitForTimeout(60_000); // until there is some of everything
    const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
    await mkdir(docs, { recursive: true });
    const take = async (name: string, ready: string): Promise<void> => {
      await page.locator(ready).first().waitFor();
      await page.waitForTimeout(1_500); // what is loaded meanwhile
      await page.screenshot({ path: `${docs}${name}.png` });
    };
    const go = (hash: string): Promise<void> => page.evaluate((to) => void (location.hash = to), hash);
    await take('portal', '.table-body .table-row');
    await page.getByRole('button', { name: /^Failed/ }).click();
    await page.locator('.table-body .row-link').first().click();
    await take('job', '.log-ended');
    await go('#mine');
    await take('mine', '.mine-section');
    await page.locator('.bell-button').click();
    await take('inbox', '.inbox-items');
    await page.keyboard.press('Escape');
    await go('#overview');
    await take('overview', '.charts');
    await go('#history');
    await take('history', '.plain-table .row-link');
    await go('#kinds/nodes/node-01');
    await take('node', '.job-facts .fact');
    await go('#kinds');
    await take('kinds', '.kinds .row-link');
    await page.emulateMedia({ colorScheme: 'dark' });
    await go('#jobs');
    await take('portal-dark', '.table-body .table-row');
  });
});

// The whole of it: a real control plane, the real gateway with the portal inside, a real browser.

import { parse as parseCsv } from 'csv-parse/sync';
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import type { Browser, Page } from 'playwright-core';
import { renderToString } from 'react-dom/server';
import { createElement, type FunctionComponent } from 'react';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createKubecast, type Kubecast as Client, type KubeObject, type PastJob, type Resource } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { answers } from '../sdk/examples/standins/expo-fetch.ts';
import { jar } from '../sdk/examples/standins/next-headers.ts';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { act, guidesBundle, openGuide, shownIn } from './support/guides.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { noticesOf, recordNotices } from './support/notices.ts';
import { withFewColors } from './support/png.ts';
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
      await page.getByRole('tab', { name: tab }).click();
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
    await tab.goto(`${kubecast.url}/#pods`);
    await elsewhere.page.goto(`${kubecast.url}/#token=${hers}`);
    await elsewhere.page.getByRole('button', { name: 'Sign in' }).click();
    for (const other of [tab, elsewhere.page]) await other.locator('.bell-button').waitFor();
    await elsewhere.page.evaluate(() => (location.hash = '#jobs'));
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

  test('a wrong token is refused with a reason, the right one lets all tabs in, and they leave together', async () => {
    await page.goto(kubecast.url);
    await page.getByLabel('Token').fill('not.a.token');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('does not accept this token').waitFor();
    await page.getByLabel('Token').fill(token);
    await page.keyboard.press('Enter');
    await status(/^Live$/);
    expect(await page.locator('.account-name').textContent()).toBe('mara.lindqvist');
    // Nothing that a script could carry off, though there is a cookie.
    expect(await page.evaluate(() => [JSON.stringify(localStorage) + JSON.stringify(sessionStorage), document.cookie])).toEqual([expect.not.stringContaining(token), '']);
    expect((await page.context().cookies()).map(({ name, httpOnly, secure, sameSite }) => [name, httpOnly, secure, sameSite])).toEqual([['__Host-kubecast', true, true, 'Strict']]);
    const second = await page.context().newPage();
    await second.goto(`${kubecast.url}/#jobs`);
    await second.locator('.account-name', { hasText: 'mara.lindqvist' }).waitFor();
    // The link once more, as from the terminal: there is nothing to ask.
    const third = await page.context().newPage();
    await third.goto(`${kubecast.url}/#token=${token}`);
    await third.locator('.account-name', { hasText: 'mara.lindqvist' }).waitFor();
    expect([await third.getByRole('alert').count(), third.url().includes('token')]).toEqual([0, false]);
    await second.getByRole('button', { name: 'Sign out' }).click();
    for (const tab of [page, second, third]) await tab.getByLabel('Token').waitFor();
    expect(await page.context().cookies()).toEqual([]);
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

  // Against a gateway in memory they run in sdk/examples. What needs no browser runs in Node here; React Native and Next with stand-ins for what is theirs.
  describe('what the guides tell people to write', () => {
    const team = 'team-a';
    let serve: Awaited<ReturnType<typeof guidesBundle>>;

    beforeAll(async () => {
      [serve] = await Promise.all([guidesBundle(), kubecast.kubectl(['create', 'namespace', team])]);
    });
    beforeEach(() => serve(page.context()));
    afterEach(() => kubecast.kubectl(['delete', 'jobs', '--namespace', team, '--all', '--wait=true']));

    /** One that runs has as many pods as are said; one that waits is suspended, and does not change by itself. */
    const put = async (name: string, running = 0): Promise<void> => {
      const template = { metadata: { annotations: { 'devcluster.kubecast.io/start-seconds': '0', 'devcluster.kubecast.io/run-seconds': '600' } }, spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'none' }] } };
      const spec = { suspend: running === 0, parallelism: running || 1, completions: running || 1, template };
      await kubecast.api('POST', `/apis/batch/v1/namespaces/${team}/jobs`, { apiVersion: 'batch/v1', kind: 'Job', metadata: { name }, spec });
      await kubecast.kubectl(['wait', '--namespace', team, `job/${name}`, '--timeout=120s', running ? `--for=jsonpath={.status.active}=${running}` : '--for=condition=Suspended']);
    };
    const start = (on = page) => openGuide(on, kubecast.url, `#token=${token}`);
    const shows = (text: string | RegExp, on = page) => expect.poll(() => shownIn(on)).toMatch(typeof text === 'string' ? new RegExp(`^${text}$`) : text);
    const signIn = async (): Promise<void> => {
      await openGuide(page, kubecast.url);
      expect(await act(page, 'exchange', token)).toBe(true);
    };
    const told = async () => (await act(page, 'told')) as readonly { readonly from: string; readonly events: readonly string[] }[];

    test('Vue, Svelte and Solid: jobs come and go, and one is chosen; TanStack Query has them, too', async () => {
      await put('train', 1);
      await put('waits');
      const pages = [page, await page.context().newPage(), await page.context().newPage()];
      for (const [n, name] of ['vue', 'svelte', 'solid'].entries()) {
        await start(pages[n]);
        await act(pages[n] ?? page, name);
      }
      const queried = await page.context().newPage();
      await start(queried);
      await act(queried, 'query');
      const all = (text: string) => Promise.all(pages.map((one) => shows(text, one)));
      await all('train ?Choose a job');
      await shows(/^(trainwaits|waitstrain)$/, queried);
      await put('eval', 2);
      await all('traineval ?Choose a job');
      for (const one of pages) await one.getByRole('button', { name: 'eval' }).click();
      await all('traineval ?eval: 2 active');
      await kubecast.kubectl(['delete', 'job', '--namespace', team, 'train', '--wait=true']);
      await all('eval ?eval: 2 active');
      await shows(/^(evalwaits|waitseval)$/, queried);
    });

    test('a page with tokens says what is old, what is denied, and who must sign in again', async () => {
      const bob = await kubecast.token('bob', ['team-nlp']);
      await start();
      await act(page, 'tokens', ['not.a.token', bob]);
      await shows(/^bob.*forbidden.* Try againYou may not see these jobs$/i);
      await kubecast.kubectl(['create', 'rolebinding', '--namespace', team, 'guest', '--clusterrole=team-viewer', '--user=bob']);
      await put('train', 1);
      await expect.poll(async () => {
        await page.getByRole('button', { name: 'Try again' }).click({ timeout: 1_000 }).catch(() => undefined); // until the binding is known
        return shownIn(page);
      }).toBe('bobtraintrain');

      await kubecast.killGateway();
      await shows(/^bobThe gateway does not answer: .*Try nowAs of .*traintrain$/);
      await act(page, 'endTokens');
      await kubecast.startGateway();
      await page.getByRole('button', { name: 'Try now' }).click({ timeout: 2_000 }).catch(() => undefined); // unless it has just done so
      await shows(/^Sign in again/);
    });

    test('tabs share one stream by the cookie that a token became, until they leave', async () => {
      await put('train');
      await signIn();
      expect([await act(page, 'exchange', 'bad'), await act(page, 'pasted', 'bad')]).toEqual([false, false]);
      expect(await act(page, 'pasted', `${token}\n`)).toBe(true);
      const second = await page.context().newPage();
      const streams: string[] = [];
      page.context().on('request', (request) => request.url().includes('/stream?') && streams.push(request.url()));
      for (const one of [page, second]) {
        await openGuide(one, kubecast.url);
        await act(one, 'tabs');
        await shows('train', one);
      }
      await put('eval');
      for (const one of [page, second]) await shows('traineval', one);
      expect(streams).toHaveLength(1);
      await act(page, 'leave');
    });

    test('what a server rendered goes on in the browser from the position, without a snapshot', async () => {
      await put('train', 1);
      await signIn();
      const { page: render } = (await import('guide:ssr/server.tsx')) as unknown as { page: (gateway: string, token: string) => Promise<string> };
      const html = await render(kubecast.url, token);
      expect(html).toContain('<li>train</li>');
      jar.set('token', { value: token });
      process.env['KUBECAST_GATEWAY'] = kubecast.url;
      const { default: Page } = (await import('guide:ssr/app/page.tsx')) as unknown as { default: () => Promise<{ readonly props: object }> };
      const { props } = await Page();
      delete process.env['KUBECAST_GATEWAY'];
      await put('eval', 1);

      await page.route('**/rendered', (route) => route.fulfill({ contentType: 'text/html', body: html }));
      await page.route('**/client.js', (route) => route.fulfill({ contentType: 'text/javascript', body: "import '/guide/entry.js'; window.acts.hydrate();" }));
      for (const open of [() => page.goto(`${kubecast.url}/rendered`), () => openGuide(page, kubecast.url).then(() => act(page, 'next', props))]) {
        await open();
        await expect.poll(() => page.locator('li').allTextContents()).toEqual(['train', 'eval']);
        const [stream] = await told();
        expect(stream?.from).not.toBe('');
        expect(stream?.events.filter((event) => event.endsWith('.added'))).toHaveLength(1); // the one that was missed
      }
    });

    test('rows are there from the disk, then only what was missed is told, one tab writes, and nothing is left of who signs out', async () => {
      await put('train');
      await put('eval');
      const live = (on: Page, ...rows: string[]) => expect.poll(() => act(on, 'state')).toEqual({ status: 'live', asOf: 'undefined', rows });
      const open = async (on: Page, byHand = false): Promise<void> => {
        await start(on);
        await act(on, 'open', byHand);
      };
      await open(page);
      await live(page, 'eval', 'train');
      await act(page, 'hide');
      await expect.poll(() => act(page, 'writer')).toBeTruthy();
      const before = await act(page, 'writer');
      await page.goto('about:blank');
      await put('missed');
      await kubecast.kubectl(['delete', 'job', '--namespace', team, 'eval', '--wait=true']);
      let answer = (): void => undefined;
      const waits = new Promise<void>((resolve) => (answer = resolve));
      await page.route('**/stream?**', async (route) => {
        await waits;
        await route.continue();
      });
      await open(page);
      expect(await act(page, 'state')).toEqual({ status: 'stale', asOf: 'number', rows: ['eval', 'train'] });
      answer();
      await live(page, 'missed', 'train');
      const [stream] = await told();
      const of = (type: string): number => stream?.events.filter((event) => event.endsWith(`.${type}`)).length ?? 0;
      expect([stream?.from === '', of('added'), of('deleted'), of('reset')]).toEqual([false, 1, 1, 0]);

      await act(page, 'hide'); // the last that it writes, after which others may
      await expect.poll(() => act(page, 'writer')).not.toBe(before);
      const ofPage = await act(page, 'writer');
      const second = await page.context().newPage();
      await open(second, true);
      await live(second, 'missed', 'train');
      await expect.poll(async () => {
        await act(second, 'save');
        return act(second, 'writer');
      }).not.toBe(ofPage);
      const its = await act(page, 'writer');
      await act(page, 'hide'); // it would write, and leaves it to the other one
      await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 500)));
      expect(await act(page, 'writer')).toBe(its);
      await act(second, 'hide'); // the last that it writes, after which others may
      await expect.poll(async () => {
        await act(page, 'hide');
        return act(page, 'writer');
      }).not.toBe(its);

      await act(page, 'forget');
      await page.unroute('**/stream?**');
      await page.route('**/stream?**', () => undefined); // nobody answers
      await open(page);
      expect(await act(page, 'state')).toEqual({ status: 'loading', asOf: 'undefined', rows: [] });
      expect(await act(page, 'writer')).toBe('');
    });

    test('in Node: a program says what runs, what a user had is asked for, and an app has its rows', async () => {
      await put('train', 1);
      const lines: string[] = [];
      const stop = new AbortController();
      const { watch } = (await import('guide:runtimes/watch.ts')) as unknown as { watch: (gateway: string, token: () => string, say: (line: string) => void, signal: AbortSignal) => Promise<void> };
      const ended = watch(kubecast.url, () => token, (line) => void lines.push(line), stop.signal);
      await expect.poll(() => lines.at(-1)).toMatch(/\btrain\b/);

      const hers = createKubecast({ gateway: kubecast.url, token: () => token });
      const { mine } = (await import('guide:errors/past.ts')) as unknown as { mine: (kc: Client) => Promise<readonly PastJob[]> };
      expect((await mine(hers)).every(({ owner }) => owner === 'mara.lindqvist')).toBe(true);
      hers.close();

      answers.by = (input, init) => fetch((input as string).replace('https://kubecast.example.org', kubecast.url), init);
      const { tokens } = (await import('guide:react-native/tokens.ts')) as unknown as { tokens: { current: () => Promise<string> } };
      tokens.current = () => Promise.resolve(token);
      const { kc, leave } = (await import('guide:react-native/kc.ts')) as unknown as { kc: Client; leave: () => void };
      const { jobs } = (await import('guide:react-native/kubernetes.ts')) as unknown as { jobs: Resource<KubeObject> };
      const { Jobs } = (await import('guide:react-native/Jobs.tsx')) as unknown as { Jobs: FunctionComponent<{ team: string }> };
      const rows = kc.watch(jobs, { namespace: team, fields: ['status.active'] });
      rows.subscribe(() => undefined);
      await expect.poll(() => rows.getSnapshot().data.map(({ metadata }) => metadata.name)).toEqual(['train']);
      expect(renderToString(createElement(KubecastProvider, { client: kc }, createElement(Jobs, { team })))).toContain('loading'); // as on a server
      leave();
      kc.close();

      await put('eval', 1);
      await expect.poll(() => lines.at(-1)).toMatch(/\beval\b/);
      stop.abort();
      await ended;
    });
  });

  if (picture) test('pictures for the documentation', async () => {
    await page.setViewportSize({ width: 1280, height: 720 });
    await open('#jobs');
    await page.locator('.chip', { hasText: 'Failed' }).waitFor({ timeout: 240_000 });
    await page.waitForTimeout(60_000); // until there is some of everything
    const docs = fileURLToPath(new URL('../../docs/', import.meta.url));
    await mkdir(docs, { recursive: true });
    const take = async (name: string, ready: string): Promise<void> => {
      await page.locator(ready).first().waitFor();
      await page.waitForTimeout(1_500); // what is loaded meanwhile
      await writeFile(`${docs}${name}.png`, withFewColors(await page.screenshot()));
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
    await page.mouse.move(640, 719); // over nothing that shows it
    await go('#overview?since=1h');
    await take('overview', '.charts');
    await go('#history');
    await take('history', '.plain-table .row-link');
    await go('#kinds/nodes');
    await page.locator('.plain-table .row-link').first().waitFor();
    await go('#kinds/nodes/node-01');
    await take('node', '.job-facts .fact');
    await go('#kinds');
    await take('kinds', '.kinds .row-link');
    await page.emulateMedia({ colorScheme: 'dark' });
    await go('#jobs');
    await take('portal-dark', '.table-body .table-row');
  });
});

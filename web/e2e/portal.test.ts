// The built portal in Chromium, against the mock gateway, under a strict content security policy: what
// a real gateway cannot easily be made to do.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { MockGateway } from '../mock/gateway.ts';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { isBuilt, mockToken, startMock } from './support/portal.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, 'the built portal (npm run build)': isBuilt });
const mara = mockToken('mara');

describe.skipIf(lacking !== undefined)(`the portal${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let gateway: MockGateway;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    browser = await launch();
  });

  afterAll(async () => {
    await browser.close();
  });

  beforeEach(async () => {
    gateway = await startMock();
    gateway.users.set(mara, {});
    for (const name of ['team-a', 'team-b']) gateway.cluster.put('namespaces', { metadata: { name } });
    ({ page, complaints } = await openPage(browser));
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    await gateway.stop();
    expect(said).toEqual([]);
  });

  const putJob = (name: string, state: 'pending' | 'running' | 'complete' = 'running', namespace = 'team-a', uid?: string) =>
    gateway.cluster.put('jobs', {
      metadata: { name, namespace, creationTimestamp: new Date().toISOString(), ...(uid ? { uid } : {}) },
      spec: { completions: 1 },
      status: {
        pending: { active: 1, ready: 0 },
        running: { active: 1, ready: 1 },
        complete: { succeeded: 1, conditions: [{ type: 'Complete', status: 'True' }] },
      }[state],
    });

  const row = (name: string) => page.locator(`.table-body .table-row[data-name="${name}"]`);
  const names = () => page.locator('.table-body .table-row').evaluateAll((rows) => rows.map((item) => item.getAttribute('data-name')).sort());
  const status = (text: RegExp) => page.locator('.connection-label', { hasText: text }).waitFor();
  const signIn = async (token = mara, hash = '') => {
    await page.goto(`${gateway.url}/${hash}`);
    await page.getByLabel('Token').fill(token);
    await page.getByRole('button', { name: 'Sign in' }).click();
  };

  describe('signing in', () => {
    test('a wrong token is refused with the reason, and is kept nowhere', async () => {
      await signIn(mockToken('mallory'));
      await page.getByRole('alert').getByText('does not accept this token').waitFor();
      expect(await page.getByRole('alert').textContent()).toContain('the token is not valid');
      expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
      expect(gateway.requests).toHaveLength(1);
      expect(await page.getByText('gateway token').isVisible()).toBe(true);
    });

    test('a right one opens the tables, says whose it is, and becomes the session of all tabs', async () => {
      putJob('train');
      await signIn(` ${mara.slice(0, 20)}\n${mara.slice(20)} `);
      await row('train').waitFor();
      expect(await page.locator('.account-name').textContent()).toBe('mara');
      await page.reload();
      await row('train').waitFor();
      expect(await page.evaluate(() => localStorage.length)).toBe(0);
      const other = await page.context().newPage();
      await other.goto(gateway.url);
      await other.locator('.table-row[data-name="train"]').waitFor();
      expect(await other.locator('.account-name').textContent()).toBe('mara');
    });

    const open = async (token: string) => {
      await page.goto(`${gateway.url}/#token=${token}`);
      await page.waitForURL((url) => !url.hash.includes('token'));
    };

    test('a link with a token asks first, and leaves no trace in the address', async () => {
      putJob('train');
      await open(mara);
      await page.getByText('This link signs you in as mara').waitFor();
      expect(gateway.requests.filter((request) => request.token !== '')).toEqual([]);
      expect(await page.evaluate(() => sessionStorage.length + localStorage.length)).toBe(0);
      await page.keyboard.press('Enter');
      await page.locator('.account-name', { hasText: 'mara' }).waitFor();
      await page.goBack();
      expect(page.url()).not.toContain('token');
    });

    test('who does not want to be whom a link names is not, nor after a reload', async () => {
      await open(mara);
      await page.getByRole('button', { name: 'Not me' }).click();
      await page.getByLabel('Token').waitFor();
      await page.reload();
      await page.getByLabel('Token').waitFor();
      expect(gateway.requests.filter((request) => request.token !== '')).toEqual([]);
    });

    test('a link with a token never takes the place of a session', async () => {
      putJob('train');
      gateway.users.set('another', {});
      await signIn('another');
      await row('train').waitFor();
      for (const tab of ['changed', 'reloaded']) {
        await open(mara);
        if (tab === 'reloaded') await page.goto('about:blank').then(() => open(mara));
        await page.getByRole('alert').getByText('would have signed you in as mara').waitFor();
        await row('train').waitFor();
        expect(gateway.requests.filter((request) => request.token === mara)).toEqual([]);
        await page.getByRole('button', { name: 'All right' }).click();
        await page.getByRole('alert').waitFor({ state: 'detached' });
      }
      // Who signs out is asked.
      await open(mara);
      await page.getByRole('button', { name: 'Sign out' }).click();
      await page.getByRole('button', { name: 'Sign in' }).click();
      await page.locator('.account-name', { hasText: 'mara' }).waitFor();
    });

    test('an unreachable gateway is told, and tried again without a click', async () => {
      await page.goto(gateway.url);
      await gateway.stop();
      await page.getByLabel('Token').fill(mara);
      await page.keyboard.press('Enter');
      await page.getByText('The gateway cannot be reached.').waitFor();
      await gateway.start();
      await page.locator('.top').waitFor();
    });

    test('a token that ends while one looks leads back to the sign-in, and from there to the same view', async () => {
      putJob('train', 'running', 'team-b');
      await signIn(mara, '#jobs?ns=team-b');
      await row('train').waitFor();
      gateway.users.delete(mara);
      for (const stream of gateway.streams) stream.goodbye('expired');
      await page.getByRole('alert').getByText('You have been signed out').waitFor();
      const asked = gateway.requests.length;
      await page.waitForTimeout(1_000);
      const more = gateway.requests.slice(asked).map(({ url }) => url);
      expect(more.length, more.join()).toBeLessThan(4); // what was under way, and no flood of refused requests
      gateway.users.set(mara, {});
      await page.getByLabel('Token').fill(mara);
      await page.keyboard.press('Enter');
      await row('train').waitFor();
      expect(page.url()).toContain('ns=team-b');
    });
  });

  describe('what the user may not see', () => {
    const choices = () => page.getByLabel('Namespace').locator('option').allTextContents();

    test('who may see some namespaces sees these, chooses among them, and follows his permissions', async () => {
      gateway.users.set(mara, { namespaces: ['team-a'] });
      putJob('mine');
      putJob('theirs', 'running', 'team-b');
      await signIn();
      await row('mine').waitFor();
      expect(await names()).toEqual(['mine']);
      await expect.poll(choices).toEqual(['Your namespace', 'team-a']);
      await row('mine').evaluate((element) => Object.assign(window, { rowOfMine: element }));

      gateway.users.set(mara, { namespaces: ['team-a', 'team-b'] });
      for (const stream of gateway.streams) stream.see(['team-a', 'team-b']);
      await row('theirs').waitFor();
      await expect.poll(choices).toEqual(['Your 2 namespaces', 'team-a', 'team-b']);
      await page.getByLabel('Namespace').selectOption('team-a');
      await row('theirs').waitFor({ state: 'detached' });
      expect(await choices()).toEqual(['Your 2 namespaces', 'team-a', 'team-b']);
      await page.getByLabel('Namespace').selectOption('');
      await row('theirs').waitFor();

      for (const stream of gateway.streams) stream.see(['team-a']);
      await row('theirs').waitFor({ state: 'detached' });
      await expect.poll(choices).toEqual(['Your namespace', 'team-a']);
      expect(await row('mine').evaluate((element) => (window as unknown as { rowOfMine: Element }).rowOfMine === element)).toBe(true);
      await status(/^Live$/);
    });

    test('who may see nothing of all namespaces types one', async () => {
      gateway.users.set(mara, { namespaces: [] });
      putJob('theirs', 'running', 'team-b');
      await signIn();
      await page.getByRole('heading', { name: 'You may not see jobs of all namespaces' }).waitFor();
      expect(await page.getByRole('alert').textContent()).toContain('you may not watch jobs at the cluster scope');
      await page.getByLabel('Namespace').fill('team-b');
      await page.keyboard.press('Enter');
      await page.getByRole('heading', { name: 'You may not see jobs in team-b' }).waitFor();
      expect(await names()).toEqual([]);
    });

    test('a permission taken away takes the rows away', async () => {
      putJob('train');
      await signIn();
      await row('train').waitFor();
      gateway.users.set(mara, { namespaces: [] });
      for (const stream of gateway.streams) stream.goodbye('revoked');
      await page.getByRole('heading', { name: /You may not see/ }).waitFor();
      expect(await names()).toEqual([]);
    });
  });

  describe('the connection', () => {
    test('a gateway that is killed and restarted: rows stay, the page says so, and catches up without a reload', async () => {
      const first = putJob('first', 'pending');
      await signIn();
      await row('first').waitFor();
      await page.evaluate(() => Object.assign(window, { sameDocument: true }));
      await gateway.stop();
      await status(/^Reconnecting, as of \d/);
      expect(await names()).toEqual(['first']);
      putJob('first', 'complete', 'team-a', first.metadata.uid);
      putJob('second');
      await gateway.start();
      await row('second').waitFor();
      await row('first').getByText('Succeeded').waitFor();
      await status(/^Live$/);
      expect(await page.evaluate(() => 'sameDocument' in window)).toBe(true);
      expect(gateway.requests.at(-1)?.lastEventId).toMatch(/^e1\./);
    });

    test('a reset never takes a row away that is still there, nor all of them for a moment', async () => {
      for (let n = 0; n < 15; n++) putJob(`train-${n}`);
      const gone = putJob('gone');
      await signIn();
      await row('gone').waitFor();
      await page.evaluate(() => {
        const seen: number[] = [];
        Object.assign(window, { seen });
        const body = document.querySelector('.table-scroller');
        if (body) new MutationObserver(() => seen.push(document.querySelectorAll('.table-body .table-row').length)).observe(body, { childList: true, subtree: true });
      });
      gateway.cluster.remove('jobs', gone.metadata.uid);
      gateway.epoch = 'e2';
      gateway.cutAll();
      await row('gone').waitFor({ state: 'detached' });
      await status(/^Live$/);
      const seen = await page.evaluate(() => (window as unknown as { seen: number[] }).seen);
      expect(Math.min(...seen)).toBe(15);
    });

    test('a gateway that is back without its cluster is not live, and does not make the rows any newer', async () => {
      putJob('train');
      await signIn();
      await row('train').waitFor(); // before that it is the page of one's own jobs that is live
      await status(/^Live$/);
      gateway.unavailable = true;
      gateway.cutAll();
      await status(/^Reconnecting, as of \d/);
      const label = page.locator('.connection-label');
      const asOf = await label.textContent();
      const said = new Set([asOf]);
      for (const asked = gateway.requests.length; gateway.requests.length < asked + 4; ) {
        await page.getByRole('button', { name: 'Try now' }).click();
        said.add(await label.textContent());
      }
      expect([...said]).toEqual([asOf]);
      gateway.unavailable = false;
      await status(/^Live$/);
    });

    test('what a wall says of being old is not faded with what is old, and stands out from its ground', async () => {
      await signIn(mara, '#overview?tab=wall');
      await page.locator('.wall .tile-count', { hasText: /^\d/ }).first().waitFor();
      gateway.unavailable = true;
      gateway.cutAll();
      const warning = page.locator('.wall-fresh p');
      await warning.waitFor();
      const isFaded = (selector: string): Promise<boolean> =>
        page.locator(selector).first().evaluate((shown) => {
          for (let one: Element | null = shown; one; one = one.parentElement) if (getComputedStyle(one).filter !== 'none') return true;
          return false;
        });
      await expect.poll(async () => [await isFaded('.wall .tile'), await isFaded('.wall-fresh p')]).toEqual([true, false]);
      const lightness = (one: Locator): Promise<number> =>
        one.evaluate((shown) => {
          const linear = (value: number): number => (value <= 10 ? value / 3_295 : ((value / 255 + 0.055) / 1.055) ** 2.4);
          const [red = 0, green = 0, blue = 0] = (getComputedStyle(shown).backgroundColor.match(/[\d.]+/g) ?? []).map((part) => linear(Number(part)));
          return 0.05 + 0.2126 * red + 0.7152 * green + 0.0722 * blue;
        });
      const [own, ground] = [await lightness(warning), await lightness(page.locator('[data-dated]').first())];
      expect(Math.max(own, ground) / Math.min(own, ground)).toBeGreaterThan(3);
      gateway.unavailable = false;
      await warning.waitFor({ state: 'detached' });
    });

    test('a stream that has died without a word: a page that is told to look finds out, and misses nothing', async () => {
      putJob('before');
      await signIn();
      await row('before').waitFor();
      const look = { online: () => window.dispatchEvent(new Event('online')), shown: () => document.dispatchEvent(new Event('visibilitychange')) };
      for (const [how, event] of Object.entries(look)) {
        for (const stream of gateway.streams) stream.stop();
        putJob(`while-away-${how}`);
        await page.evaluate(event);
        await row(`while-away-${how}`).waitFor({ timeout: 25_000 }); // by its silence alone it would be found out after more than 37 s
        await status(/^Live$/);
      }
    });

    test('a seventh tab over HTTP/1.1 is no blank page: all of them are live on one stream, and go on when its tab is gone', async () => {
      putJob('train');
      await signIn();
      await row('train').waitFor();
      const tabs = [page];
      while (tabs.length < 8) {
        const tab = await page.context().newPage();
        await tab.goto(`${gateway.url}/#jobs`);
        await tab.locator('.connection-label', { hasText: /^Live$/ }).waitFor();
        tabs.push(tab);
      }
      await expect.poll(() => gateway.streams.size).toBe(1);
      const seen = (name: string) => Promise.all(tabs.map((tab) => tab.locator(`.table-row[data-name="${name}"]`).waitFor({ timeout: 30_000 }))); // silence alone finds a dead stream after 37 s
      putJob('meanwhile');
      await seen('meanwhile');
      await tabs.shift()?.close(); // which came first, and leads
      putJob('afterwards');
      await seen('afterwards');
      await expect.poll(() => gateway.streams.size).toBe(1); // that of the tab which is gone may end later
    });

    test('a gateway that has lost the cluster is not called live', async () => {
      putJob('train');
      await signIn();
      await row('train').waitFor();
      await status(/^Live$/);
      const tell = (type: string) => {
        for (const stream of gateway.streams) stream.send(stream.watches[0], type, { since: new Date().toISOString(), reason: 'watch-lost' });
      };
      tell('stale');
      await status(/^Stale since \d/);
      expect(await names()).toEqual(['train']);
      tell('live');
      await status(/^Live$/);
    });
  });

  describe('the tables', () => {
    // Of more, the gateway is asked for what is in sight; see face.test.ts.
    test('two thousand rows: a screenful of them exists, and any can be found', async () => {
      for (let n = 0; n < 2_000; n++) putJob(`train-${n}`);
      await signIn();
      await page.locator('.chip', { hasText: 'All 2,000' }).waitFor();
      expect((await names()).length).toBeLessThan(80);
      await page.locator('.table-scroller').evaluate((scroller) => scroller.scrollTo(0, scroller.scrollHeight));
      await page.locator('[aria-rowindex="2001"]').waitFor();
      expect((await names()).length).toBeLessThan(80);
      await page.keyboard.press('/');
      await page.keyboard.type('train-123');
      await row('train-1234').waitFor();
      await expect.poll(async () => (await names()).length).toBe(11); // it is typed by and by
    });

    test('a row that changes its state is marked, the others are not; nothing is at first', async () => {
      const { metadata } = putJob('a', 'pending');
      putJob('b', 'pending');
      await signIn();
      await row('a').waitFor();
      // A mark is gone after a moment, in which a busy machine may not look: the page notes which rows had one.
      const marked = () => page.evaluate(() => [...(window as unknown as { marked: Set<string> }).marked]);
      await page.evaluate(() => {
        const names = new Set<string>();
        const look = (): void => document.querySelectorAll('.row-flash').forEach((mark) => names.add(mark.closest('[data-name]')?.getAttribute('data-name') ?? 'no row'));
        look();
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, attributes: true });
        Object.assign(window, { marked: names });
      });
      await page.waitForTimeout(300);
      expect(await marked()).toEqual([]);
      putJob('a', 'running', 'team-a', metadata.uid);
      await expect.poll(marked).toEqual(['a']);
      await page.locator('.row-flash').waitFor({ state: 'detached' });
      expect(await marked()).toEqual(['a']);
    });

    test('rows stay where they are under the pointer; what is new is counted, and comes when it is asked for, or the pointer leaves', async () => {
      putJob('one', 'running', 'team-a', 'uid-one');
      putJob('two', 'running', 'team-a', 'uid-two');
      await signIn();
      await row('one').hover();
      const places = () => page.locator('.table-body .table-row').evaluateAll((rows) => rows.map((item) => `${item.getAttribute('data-name')} ${item.getBoundingClientRect().y}`).sort());
      const before = await places();
      putJob('three');
      putJob('two', 'complete', 'team-a', 'uid-two');
      await row('two').getByText('Succeeded').waitFor(); // what is held is told on
      await page.getByRole('button', { name: '1 new ↑' }).waitFor();
      expect(await places()).toEqual(before);
      await page.getByRole('button', { name: '1 new ↑' }).click();
      await row('three').waitFor();
      await row('one').hover();
      gateway.cluster.remove('jobs', 'uid-one');
      await page.locator('.table-row[data-name="one"][data-gone]').waitFor();
      await page.mouse.move(5, 5);
      await row('one').waitFor({ state: 'detached' });
    });

    test('a namespace that does not exist is no empty one', async () => {
      await signIn();
      await page.evaluate(() => (location.hash = '#jobs?ns=team-z'));
      await page.locator('.table-empty', { hasText: 'There is no namespace team-z' }).waitFor();
      await page.evaluate(() => (location.hash = '#jobs?ns=team-b'));
      await page.locator('.table-empty', { hasText: 'There are no jobs in team-b' }).waitFor();
    });

    test('with reduced motion the mark does not move', async () => {
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await signIn();
      await status(/^Live$/);
      await page.locator('.table-empty', { hasText: 'There are no jobs' }).waitFor();
      putJob('a');
      const mark = row('a').locator('.row-flash');
      await mark.waitFor({ state: 'attached' });
      expect(await mark.evaluate((element) => getComputedStyle(element).animationTimingFunction)).toMatch(/^step|steps\(1/);
    });

    test('the namespace filter changes the watch, and rows in sight before and after stay', async () => {
      putJob('a', 'running', 'team-a');
      putJob('b', 'running', 'team-b');
      await signIn();
      await row('b').waitFor();
      await row('a').evaluate((element) => Object.assign(window, { rowOfA: element }));
      await page.getByLabel('Namespace').selectOption('team-a');
      await row('b').waitFor({ state: 'detached' });
      await expect.poll(() => gateway.requests.at(-1)?.url).toContain(encodeURIComponent('/apis/batch/v1/namespaces/team-a/jobs'));
      expect(await row('a').evaluate((element) => (window as unknown as { rowOfA: Element }).rowOfA === element)).toBe(true);
      await page.getByLabel('Namespace').selectOption('');
      await row('b').waitFor();
      await expect.poll(() => gateway.streams.size).toBe(1); // one stream, not one more per choice
    });

    test('arrow keys through the namespaces open one stream, not one for each', async () => {
      for (let n = 0; n < 8; n++) gateway.cluster.put('namespaces', { metadata: { name: `team-c${n}` } });
      putJob('last', 'running', 'team-c7');
      await signIn();
      await row('last').waitFor();
      // A key pressed before there is anything to choose from chooses nothing.
      await page.getByLabel('Namespace').getByRole('option', { name: 'team-c7' }).waitFor({ state: 'attached' });
      const asked = gateway.requests.length;
      // Whoever rests on one for a moment wants it, also a busy machine that does so between two keys.
      await page.getByLabel('Namespace').evaluate((choice) => {
        const chosen: number[] = [];
        choice.addEventListener('change', () => chosen.push(performance.now()));
        Object.assign(window, { chosen });
      });
      await page.getByLabel('Namespace').focus();
      for (let n = 0; n < 10; n++) await page.keyboard.press('ArrowDown');
      await expect.poll(() => page.url()).toContain('ns=team-c7');
      await expect.poll(() => gateway.requests.at(-1)?.url).toContain('team-c7');
      const rests = await page.evaluate(() => (window as unknown as { chosen: number[] }).chosen.filter((at, n, all) => n > 0 && at - (all[n - 1] ?? 0) > 150).length);
      expect(gateway.requests.length - asked).toBeLessThan(4 + rests);
    });

    test('only what is shown goes over the line', async () => {
      putJob('train');
      await signIn();
      await row('train').waitFor();
      const watches = () => [...new URL(gateway.requests.at(-1)?.url ?? '', gateway.url).searchParams].filter(([, path]) => path.startsWith('/'));
      const kinds = () => watches().flatMap(([, path]) => /\/(jobs|pods|namespaces)\?/.exec(path)?.[1] ?? []).sort().join();
      await expect.poll(kinds).toBe('jobs,namespaces');
      for (const [, path] of watches()) expect(path).toContain('fields=');
      await page.getByRole('link', { name: 'Pods' }).click();
      await expect.poll(kinds).toBe('namespaces,pods'); // the jobs are kept for a moment, for whoever comes back at once
      await status(/^Live$/);
      expect(gateway.requests.at(-1)?.lastEventId).toMatch(/\.w\w+-/);
    });

    test('everything is within reach of the keyboard', async () => {
      for (const name of ['c', 'a', 'b']) putJob(name);
      await signIn();
      await row('a').waitFor();
      await page.keyboard.press('/');
      await page.keyboard.type('nothing like it');
      await page.getByText('None of the 3 jobs matches.').waitFor();
      await page.keyboard.press('Escape');
      await row('a').waitFor();
      for (let n = 0; n < 20; n++) {
        await page.keyboard.press('Tab');
        if ((await page.evaluate(() => document.activeElement?.textContent)) === 'Name') break;
      }
      await page.keyboard.press('Enter');
      await page.locator('[role=columnheader][aria-sort=ascending]', { hasText: 'Name' }).waitFor();
      await page.keyboard.press('Enter');
      await page.locator('[role=columnheader][aria-sort=descending]', { hasText: 'Name' }).waitFor();
      await expect.poll(() => page.locator('.table-body .table-row').evaluateAll((rows) => rows.map((item) => item.getAttribute('data-name')).join(''))).toBe('cba');
    });

    test('the address carries the view, and takes it up again', async () => {
      for (const [name, state] of [['a', 'running'], ['b', 'complete'], ['c', 'complete']] as const) putJob(name, state);
      await signIn();
      await page.locator('.chip', { hasText: 'Succeeded' }).click();
      await page.getByRole('button', { name: 'Name', exact: true }).click();
      await expect.poll(names).toEqual(['b', 'c']);
      await expect.poll(() => new URL(page.url()).hash).toBe('#jobs?state=Succeeded&sort=name');
      await page.reload();
      await row('b').waitFor();
      await expect.poll(names).toEqual(['b', 'c']);
    });
  });
});

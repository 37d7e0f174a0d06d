// Every page on a real gateway, in both languages, light and dark: what a program can tell of WCAG 2.2 AA, words that no language has,
// and narrow screens.

import { mkdir } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { englishOf, violations } from './support/face.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
/** Where pictures of each page are put, for somebody to look at; none if it is empty. */
const pictures = process.env.KUBECAST_PICTURES ?? '';
const namespace = 'team-vision';
const user = 'mara.lindqvist';

describe.skipIf(lacking !== undefined)(`the face of the portal${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let token: string;

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start()]);
    token = await kubecast.token(user, ['platform']);
    await kubecast.submit(namespace, 'face-done', { start: 0, run: 1 });
    await kubecast.submit(namespace, 'face-runs-with-a-name-that-is-too-long-for-any-column', { start: 0, run: 600, pods: 3 });
    await kubecast.submit(namespace, 'face-waits', { start: 600, run: 600 });
    await kubecast.waitComplete(namespace, 'face-done');
    if (pictures) await mkdir(pictures, { recursive: true });
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
  });

  const open = async (locale: string, colorScheme: 'light' | 'dark', width = 1280, forcedColors: 'active' | 'none' = 'none'): Promise<{ page: Page; complaints: string[] }> => {
    const opened = await openPage(browser, { locale, colorScheme, forcedColors, reducedMotion: 'reduce', viewport: { width, height: 800 } });
    await opened.page.goto(kubecast.url);
    await opened.page.locator('#token').waitFor();
    return opened;
  };
  const signIn = async (page: Page): Promise<void> => {
    await page.locator('#token').fill(token);
    await page.locator('button[type=submit]').click();
    await page.locator('.connection-live').waitFor();
  };
  const jobAddress = `#jobs/${namespace}/face-runs-with-a-name-that-is-too-long-for-any-column`;
  /** The address of each page, by a name for it. */
  const addresses = async (page: Page): Promise<Map<string, string>> => {
    const links = await page.locator('header nav a').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? ''));
    return new Map([
      ...links.map((link): [string, string] => [link.replace(/^#/, '').replace(/\?.*/, ''), link]),
      ['job', jobAddress],
      ...['pods', 'events', 'yaml'].map((tab): [string, string] => [`job-${tab}`, `${jobAddress}?tab=${tab}`]),
      ['compare', `${jobAddress}?tab=compare`],
      ['wall', '#overview?tab=wall'],
      ['unknown', '#nonsense'],
      ['nothing-found', '#jobs?q=nobody'],
    ]);
  };
  const go = async (page: Page, address: string): Promise<void> => {
    await page.evaluate((to) => (location.hash = to), address);
    await page.locator('main :is(h1, .table-row, .notice)').first().waitFor();
    await page.waitForFunction(settled, undefined, { polling: 50 });
  };
  const eachPage = async (page: Page, look: (name: string) => Promise<void>): Promise<void> => {
    await look('sign-in');
    await signIn(page);
    for (const [name, address] of await addresses(page)) {
      await go(page, address);
      await look(name);
    }
    await page.locator('.bell-button').click();
    await page.locator('.inbox').waitFor();
    await look('inbox');
    await page.locator('.inbox-head .button').last().click();
    await page.locator('.inbox fieldset').waitFor();
    await look('inbox-settings');
  };

  // One walk for all of it, since what costs is to come to each page. Colours are all that the dark has of its own.
  test.each(['en-GB', 'zh-CN'])('axe finds nothing on any page, light or dark; targets are 24 pixels high and wide, or stand in a sentence; words are of the language: in %s', async (locale) => {
    const { page, complaints } = await open(locale, 'light');
    const found = { axe: new Set<string>(), small: new Set<string>(), english: new Set<string>() };
    await eachPage(page, async (name) => {
      expect(await page.evaluate(() => document.documentElement.lang)).toBe(locale === 'zh-CN' ? 'zh-CN' : 'en');
      for (const one of await violations(page)) found.axe.add(`${name}: ${one}`);
      for (const one of await page.evaluate(smallTargets)) found.small.add(`${name}: ${one}`);
      if (locale === 'zh-CN') for (const text of await englishOf(page)) found.english.add(`${name}: ${text}`);
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${locale.slice(0, 2)}-light.png` });
      await page.emulateMedia({ colorScheme: 'dark' });
      for (const one of await violations(page, ['color-contrast'])) found.axe.add(`${name}, dark: ${one}`);
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${locale.slice(0, 2)}-dark.png` });
      await page.emulateMedia({ colorScheme: 'light' });
    });
    await closeContext(page.context());
    expect(found).toEqual({ axe: new Set(), small: new Set(), english: new Set() });
    expect(complaints).toEqual([]);
  });

  test('another language is chosen in the header, and kept', async () => {
    const { page } = await open('en-GB', 'light');
    await signIn(page);
    await page.getByLabel('Language').selectOption('zh-CN');
    await page.getByRole('button', { name: '退出登录' }).waitFor();
    await page.reload();
    await page.getByRole('button', { name: '退出登录' }).waitFor();
    expect(await page.evaluate(() => document.documentElement.lang)).toBe('zh-CN');
    await closeContext(page.context());
  });

  test.each(['en-GB', 'zh-CN'])('nothing runs out of a screen of 320 pixels, in %s', async (locale) => {
    const { page } = await open(locale, 'light', 320);
    const wide: string[] = [];
    await eachPage(page, async (name) => {
      if (pictures) await page.screenshot({ path: `${pictures}/${name}-${locale.slice(0, 2)}-320.png` });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      if (width > 320) wide.push(`${name}: ${width}`);
    });
    await closeContext(page.context());
    expect(wide).toEqual([]);
  });

  test('without the colours of the page, what has the focus, what is chosen and each state are still told', async () => {
    const { page } = await open('en-GB', 'light', 1280, 'active');
    await signIn(page);
    await go(page, '#jobs?ns=' + namespace);
    const row = page.locator(`[data-name="face-done"]`);
    await row.getByText('Succeeded').waitFor();
    const line = (selector: string): Promise<string> => page.locator(selector).first().evaluate((one) => {
      const { outlineStyle, outlineWidth, outlineColor } = getComputedStyle(one);
      return outlineStyle === 'none' || parseFloat(outlineWidth) < 2 ? 'none' : outlineColor === getComputedStyle(document.body).backgroundColor ? 'unseen' : 'seen';
    });
    expect(await line('header nav a:not([aria-current])')).toBe('none');
    expect(await line('header nav a[aria-current]')).toBe('seen');
    expect(await line('.chip[aria-pressed=true]')).toBe('seen');
    await page.locator('.search').focus();
    await page.keyboard.press('Escape');
    for (const target of ['.search', '.chip', '.table-head button', '.row-link', 'header .button']) {
      await page.locator(target).last().focus();
      await page.keyboard.press('Shift'); // the focus is the keyboard's
      expect([target, await line(`${target}:focus`)]).toEqual([target, 'seen']);
    }
    // A sign is drawn in a colour that differs from what is behind it.
    const sign = await row.locator('.state-icon').evaluate((one) => [getComputedStyle(one).stroke, getComputedStyle(document.body).backgroundColor]);
    expect(sign[0]).not.toBe(sign[1]);
    if (pictures) await page.screenshot({ path: `${pictures}/jobs-en-forced.png` });
    await closeContext(page.context());
  });

  test('a row is read out by its name, its state and its figures; what all rows share is left out', async () => {
    const { page } = await open('en-GB', 'light');
    await signIn(page);
    await go(page, '#jobs');
    const row = page.locator('[data-name="face-done"]');
    await row.getByText('Succeeded').waitFor();
    const headers = (): Promise<string[]> => page.getByRole('columnheader').allTextContents();
    expect((await headers()).slice(0, 6)).toEqual(['Name', 'State', 'Progress', 'Run time', 'Age', 'Namespace']);
    await expect.poll(() => row.ariaSnapshot()).toMatch(
      new RegExp(String.raw`^- row "face-done Succeeded 1/1 \S+( \S+)? \S+( \S+)? ${namespace} [^"]*":\n  - cell "face-done":\n    - link "face-done":`),
    );
    await go(page, `#jobs?ns=${namespace}`);
    await expect.poll(headers).not.toContain('Namespace');
    // Each cell stands under its header, with and without that column.
    const lefts = (selector: string): Promise<number[]> => page.locator(selector).evaluateAll((all) => all.filter((one) => one.checkVisibility()).map((one) => Math.round(one.getBoundingClientRect().left)));
    expect(await lefts('[data-name="face-done"] [role=cell]')).toEqual(await lefts('[role=columnheader]'));
    // The end of a name that is too long, and of numbers, is where it is looked for.
    await page.setViewportSize({ width: 760, height: 800 });
    const long = page.locator('[data-name^="face-runs"]');
    const cut = await long.locator('.cut-name').first().evaluate((one) => {
      const [first, last] = [...one.children].map((part) => ({ cut: part.scrollWidth > part.clientWidth, right: part.getBoundingClientRect().right }));
      return { first: first?.cut, last: last?.cut, inside: (last?.right ?? Infinity) <= (one.closest('[role=cell]')?.getBoundingClientRect().right ?? 0) };
    });
    expect(cut).toEqual({ first: true, last: false, inside: true });
    // What is cut is copied as it is.
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await long.locator('.cut-name').first().evaluate((one) => getSelection()?.selectAllChildren(one));
    await page.keyboard.press('Control+C');
    await expect.poll(() => page.evaluate(() => navigator.clipboard.readText())).toBe('face-runs-with-a-name-that-is-too-long-for-any-column');
    const ages = await page.locator('.table-body .column-age time').evaluateAll((all) => all.map((one) => Math.round(one.getBoundingClientRect().right)));
    expect(new Set(ages).size).toBe(1);
    await closeContext(page.context());
  });
});

/** Whether all of a page is there: nothing is being loaded, what was answered has been rendered, and the page that was there before is gone. */
function settled(): boolean {
  const seen = window as { settledAs?: string | undefined };
  const main = document.querySelector('main');
  const now = `${location.hash} ${main?.querySelectorAll('*').length ?? 0}`;
  const same = seen.settledAs === now;
  seen.settledAs = now;
  return same && main !== null && main.querySelector('.page-wait, .loading, [data-loading], [aria-busy=true]') === null && !/^(Loading…|正在加载…)$/m.test(main.innerText);
}

function smallTargets(): string[] {
  return [...document.querySelectorAll('a, button, select, input, summary')].flatMap((element) => {
    const { width, height } = element.getBoundingClientRect();
    const hidden = width === 0 || !element.checkVisibility();
    const inSentence = getComputedStyle(element).display === 'inline';
    // Its label is part of it.
    const label = element.closest('label')?.getBoundingClientRect();
    return hidden || inSentence || Math.max(height, label?.height ?? 0) >= 24 ? [] : [`${element.tagName} ${element.className} ${element.textContent?.slice(0, 30)} ${width}x${height}`];
  });
}

// The inbox and the user's own page in Chromium, against the mock gateway: tabs and browsers that agree, and notices that come once.

import type { Browser, BrowserContext, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { MockGateway } from '../mock/gateway.ts';
import { MockPast } from '../mock/past.ts';
import { MockInbox } from '../mock/told.ts';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { noticesOf, recordNotices, see } from './support/notices.ts';
import { isBuilt, mockToken, startMock } from './support/portal.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, 'the built portal (npm run build)': isBuilt });
const mara = mockToken('mara');

describe.skipIf(lacking !== undefined)(`the inbox${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let gateway: MockGateway;
  let inbox: MockInbox;
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
    gateway.past = new MockPast();
    inbox = gateway.inbox = new MockInbox();
    ({ page, complaints } = await openPage(browser));
    await recordNotices(page.context());
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    await gateway.stop();
    expect(said).toEqual([]);
  });

  const signIn = async (tab: Page, hash = '') => {
    await tab.goto(`${gateway.url}/${hash}`);
    await tab.getByLabel('Token').fill(mara);
    await tab.keyboard.press('Enter');
    await settled(tab);
  };
  const settled = async (tab: Page) => {
    await tab.locator('.connection-label', { hasText: /^Live$/ }).waitFor();
    await tab.locator('.bell').waitFor();
  };
  /** Another one of a browser that is signed in. */
  const newTab = async (context: BrowserContext, hash = ''): Promise<Page> => {
    const tab = await context.newPage();
    await tab.goto(`${gateway.url}/${hash}`);
    await settled(tab);
    return tab;
  };
  const unread = (tab: Page) => tab.locator('.bell-button').getAttribute('aria-label');
  const turnOn = async (tab: Page) => {
    await tab.locator('.bell-button').click();
    await tab.getByRole('button', { name: 'Settings' }).click();
    await tab.getByRole('button', { name: 'Show notices in this browser, too' }).click();
    await tab.getByRole('button', { name: 'Stop showing notices in this browser' }).waitFor();
    await tab.keyboard.press('Escape');
  };

  test('two tabs and a second browser agree on what is read, whatever they show', async () => {
    for (const name of ['a', 'b', 'c']) inbox.tell(name, 'Succeeded');
    await signIn(page);
    const second = await newTab(page.context(), '#jobs');
    const elsewhere = await openPage(browser);
    await signIn(elsewhere.page, '#pods');
    const all = [page, second, elsewhere.page];
    const agree = (label: string) => expect.poll(() => Promise.all(all.map(unread)), { interval: 50 }).toEqual(all.map(() => label));
    await agree('Inbox, 3 unread');
    await second.locator('.bell-button').click();
    await second.locator('.inbox-mark').first().click();
    await agree('Inbox, 2 unread');
    await expect.poll(() => page.title()).toBe('(2) Mine · Kubecast');
    await elsewhere.page.locator('.bell-button').click();
    await elsewhere.page.getByRole('button', { name: 'Mark all as read' }).click();
    await agree('Inbox');
    inbox.tell('d', 'Failed');
    await agree('Inbox, 1 unread');
    await second.getByRole('link', { name: 'd failed' }).click();
    await second.getByRole('heading', { name: 'd', exact: true }).waitFor();
    await agree('Inbox');
    await closeContext(elsewhere.page.context());
  });

  test('a notice comes once, in one tab of the browser; nothing pops up for what was there, or in a pause, or unasked', async () => {
    inbox.tell('before', 'Failed');
    await signIn(page);
    const second = await newTab(page.context(), '#jobs');
    inbox.tell('unasked', 'Failed');
    await expect.poll(() => unread(second)).toBe('Inbox, 2 unread');
    await turnOn(second); // and the first is the one that shows them, as soon as it has heard of it
    await expect.poll(() => page.evaluate(() => [Notification.permission, Object.keys(localStorage).some((key) => key.includes('notices'))])).toEqual(['granted', true]);
    inbox.tell('silent', 'Failed', { silent: true });
    inbox.tell('one', 'Failed');
    const shown = async () => [...(await noticesOf(page)), ...(await noticesOf(second))];
    await expect.poll(shown).toEqual(['one failed']);
    await expect.poll(() => unread(second)).toBe('Inbox, 4 unread');

    // Nobody looks at either: the one goes on, and both have the count in their titles.
    for (const tab of [page, second]) await see(tab, 'hidden');
    await expect.poll(() => gateway.streams.size).toBe(1);
    inbox.tell('two', 'Succeeded');
    await expect.poll(shown).toEqual(['one failed', 'two succeeded']);
    for (const tab of [page, second]) await expect.poll(() => tab.title()).toMatch(/^\(5\) /);

    // It is closed, and the other takes over: nothing is shown again, nothing is left out.
    const before = await noticesOf(page);
    await page.close();
    page = second;
    inbox.tell('three', 'Succeeded');
    await expect.poll(() => noticesOf(second)).toEqual(['three succeeded']);
    expect(before).toEqual(['one failed', 'two succeeded']);

    await second.evaluate(() => (window as unknown as { notices: { onclick: () => void }[] }).notices[0]?.onclick());
    await see(second, 'visible');
    await second.getByRole('heading', { name: 'three', exact: true }).waitFor();
    await expect.poll(() => unread(second)).toBe('Inbox, 5 unread');
  });

  test('many at once are told as one', async () => {
    await signIn(page);
    await turnOn(page);
    await see(page, 'hidden');
    await expect.poll(() => gateway.streams.size).toBe(1);
    gateway.cutAll();
    for (let n = 0; n < 40; n++) inbox.tell(`sweep-${n}`, 'Succeeded');
    await expect.poll(() => noticesOf(page)).toEqual(['40 notifications']);
  });

  test("the first page has what is the user's own, and marks what has ended since as seen", async () => {
    const past = gateway.past;
    past?.record('train', 'Running');
    past?.record('over', 'Failed', { reason: 'DeadlineExceeded', endedAt: new Date().toISOString() });
    inbox.tell('over', 'Failed');
    await signIn(page);
    const section = (title: string) => page.locator(`section[aria-label="${title}"]`);
    await section('Ended since you last looked').getByText('over').waitFor();
    past?.record('train', 'Succeeded', { endedAt: new Date().toISOString() });
    await section('Ended earlier in the last week').getByText('train').waitFor();
    await page.getByRole('button', { name: 'Mark as read' }).click();
    await section('Ended in the last week').getByText('over').waitFor();
    await expect.poll(() => unread(page)).toBe('Inbox');
    // What is on its stream is all: nothing else is followed beside it.
    await expect.poll(() => gateway.streams.size).toBe(1);
    gateway.pastAway = true;
    gateway.cutAll();
    await page.getByText(/^What is shown is as of \d/).waitFor();
    await section('Ended in the last week').getByText('over').waitFor();
    gateway.pastAway = false;
    await page.locator('.connection-label', { hasText: /^Live$/ }).waitFor();
    await page.getByText(/^What is shown is as of \d/).waitFor({ state: 'detached' });
  });
});

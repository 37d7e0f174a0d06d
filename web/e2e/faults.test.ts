// Every page in both languages, light and dark, at once: as a job goes from its submission to its end, and while a gateway, a cluster,
// a permission or a token is lost and found again. Each page has to say so in its words, keep what it showed, and be right again by itself.
// In each browser the pages are more tabs than HTTP/1.1 has connections.

import type { Browser, BrowserContext, CDPSession, Locator, Page } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, hasChromium, launch, openPage } from './support/chromium.ts';
import { englishOf, violations } from './support/face.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const namespace = 'team-vision';
const user = 'ines.carvalho';
const node = 'node-01';
/** Who found nobody several times waits for up to half a minute until the next attempt, and a busy machine takes its time; in milliseconds. */
const longestWait = 90_000;

/** The four faces of the portal, and what they say. */
const faces = [
  ['en-GB', 'light'],
  ['zh-CN', 'dark'],
  ['en-GB', 'dark'],
  ['zh-CN', 'light'],
] as const;
const said = {
  'en-GB': {
    Succeeded: 'Succeeded', Creating: 'ContainerCreating', Completed: 'Completed', Running: 'Running', Pending: 'Pending', Ready: 'Ready', Cordoned: 'Ready,SchedulingDisabled',
    clusterAway: 'The gateway has lost its connection to the cluster.', asOf: /^What is shown is as of \d/, signIn: 'Sign in', tryAgain: 'Try again', signedOut: 'You have been signed out',
  },
  'zh-CN': {
    Succeeded: '已成功', Creating: '正在创建容器', Completed: '已完成', Running: '运行中', Pending: '等待中', Ready: '就绪', Cordoned: '就绪，不接收新 Pod',
    clusterAway: '网关与集群的连接已中断。', asOf: /^显示的内容截至 /, signIn: '登录', tryAgain: '重试', signedOut: '您已退出登录',
  },
} as const;

interface Tab {
  readonly page: Page;
  readonly name: string;
  readonly words: (typeof said)[keyof typeof said];
  /** What is wrong with it is told by this. */
  readonly title: string;
  readonly chinese: boolean;
  /** The place of its face. */
  readonly face: number;
  readonly complaints: string[];
  readonly cdp: CDPSession;
}

describe.skipIf(lacking !== undefined)(`every page, whatever happens${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let pod = '';
  const contexts: BrowserContext[] = [];
  const tabs: Tab[] = [];
  /** How often a job has ended since, and labels been changed. */
  let round = 0;
  /** How many jobs have ended by now. */
  let ended = 0;
  let looks = 0;
  /** How long it took until all tabs were there, in milliseconds. */
  let opening = 0;

  const addresses = (): Readonly<Record<string, string>> => ({
    mine: '#mine',
    overview: '#overview',
    jobs: `#jobs?ns=${namespace}`,
    job: `#jobs/${namespace}/stays?tab=yaml`,
    pods: `#pods?ns=${namespace}`,
    pod: `#pods/${namespace}/${pod}?tab=yaml`,
    history: '#history',
    kind: '#kinds/nodes',
    object: `#kinds/nodes/${node}?tab=yaml`,
  });

  /** What a page shows once it has what was done in the last round. */
  const upToDate = ({ page, name, words }: Tab): Locator => {
    const last = `round-${round}`;
    switch (name) {
      case 'mine':
        return page.locator(`li[data-name=${last}] .mine-state`, { hasText: words.Succeeded });
      case 'overview':
        return page.locator('.chart-says').first().filter({ hasText: new RegExp(`^${ended}\\D|\\D${ended}\\D`) });
      case 'jobs':
        return page.locator(`[data-name=${last}]`).getByText(words.Succeeded);
      case 'pods':
        return page.locator(`[data-name^=${last}-]`).getByText(words.Completed);
      case 'history':
        return page.locator('tr', { has: page.getByRole('link', { name: last, exact: true }) }).getByText(words.Succeeded);
      case 'kind':
        return page.locator('tr', { has: page.getByRole('link', { name: node, exact: true }) }).getByText(round % 2 === 1 ? words.Cordoned : words.Ready, { exact: true });
      default:
        return page.getByText(last).first();
    }
  };

  /** A job from its submission to its end, and another label for what stays. */
  const playRound = async (): Promise<void> => {
    const n = round + 1;
    const label = `round=round-${n}`;
    await Promise.all([
      kubecast.submit(namespace, `round-${n}`, { start: 0, run: 1, owner: user }).then(() => kubecast.waitComplete(namespace, `round-${n}`)),
      kubecast.kubectl(['label', '--overwrite', '--namespace', namespace, 'job/stays', `pod/${pod}`, label]),
      kubecast.kubectl(['label', '--overwrite', `node/${node}`, label]),
      kubecast.kubectl([n % 2 === 1 ? 'cordon' : 'uncordon', node]),
    ]);
    round = n;
    ended += 1;
  };

  /** All tabs at once; each has to succeed, and is named if it does not. */
  const each = async (does: (tab: Tab) => Promise<unknown>): Promise<void> => {
    const done = await Promise.allSettled(tabs.map(does));
    const failed = done.flatMap((one, n) => (one.status === 'rejected' ? [`${tabs[n]?.title}: ${String(one.reason).split('\n', 20).join(' ')}`] : []));
    if (failed.length > 0) throw new Error(failed.join('\n'));
  };
  /** Chromium draws pages that it takes to be covered about once a second. */
  const givesFrames = async ({ page }: Tab): Promise<void> => {
    const drawn = await page.evaluate(() => Promise.race([
      new Promise<boolean>((resolve) => requestAnimationFrame(() => resolve(true))),
      new Promise<boolean>((resolve) => setTimeout(() => resolve(false), 10_000)),
    ]));
    if (!drawn) throw new Error('no frame came in 10 s');
  };
  const status = (tab: Tab, is: string): Promise<void> => tab.page.locator(`.connection-label:is([data-status=${is}], [data-reason=${is}])`).waitFor();
  const catchesUp = async (): Promise<void> => {
    const began = Date.now();
    await each(async (tab) => {
      await upToDate(tab).waitFor({ timeout: longestWait });
      await status(tab, 'live');
      // What is no stream (usage, the history) is asked for again five seconds after it failed.
      await tab.page.waitForFunction(() => document.querySelector('[data-dated], .dated-why, .job-trouble, .notice') === null);
    });
    console.error(`all ${tabs.length} tabs were right after ${Date.now() - began} ms`);
  };
  /** What each page says meanwhile: in its language, and legible. */
  const isTold = async (look: (tab: Tab) => Promise<unknown>): Promise<void> => {
    await each(look);
    await each(async (tab) => {
      const english = tab.chinese ? await englishOf(tab.page, namespace) : [];
      if (english.length > 0) throw new Error(`in English: ${english.join(' | ')}`);
    });
    // One light face and one dark, the others at the next fault; one page after the other, since together they would only wait for each other.
    looks += 1;
    const found: string[] = [];
    for (const tab of tabs) if (Math.floor(tab.face / 2) === looks % 2) found.push(...(await violations(tab.page)).map((one) => `${tab.title}: ${one}`));
    expect(found).toEqual([]);
  };

  const open = async (context: BrowserContext, name: string, face: number): Promise<void> => {
    const [locale, scheme] = faces[face] ?? faces[0];
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    const cdp = await context.newCDPSession(page);
    await page.goto(`${kubecast.url}/${addresses()[name]}`);
    tabs.push({ page, name, words: said[locale], title: `${name}, ${locale}, ${scheme}`, chinese: locale === 'zh-CN', face, complaints, cdp });
  };
  const signedInAs = async (token: string): Promise<void> => {
    for (const context of contexts) {
      await context.addInitScript((kept) => {
        if (!sessionStorage.getItem('begun')) sessionStorage.setItem('kubecast.token', kept);
        sessionStorage.setItem('begun', 'once');
      }, token);
    }
  };

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start()]);
    await kubecast.kubectl(['create', 'clusterrolebinding', 'of-the-test', '--clusterrole=platform-viewer', `--user=${user}`]);
    await kubecast.submit(namespace, 'stays', { start: 0, run: 3_000, owner: user });
    await kubecast.kubectl(['wait', '--namespace', namespace, '--for=jsonpath={.status.ready}=1', 'job/stays', '--timeout=60s']);
    pod = await kubecast.kubectl(['get', 'pods', '--namespace', namespace, '--selector', 'batch.kubernetes.io/job-name=stays', '--output', 'jsonpath={.items[0].metadata.name}']);
    await playRound();
    for (const face of faces) {
      const { page } = await openPage(browser, { locale: face[0], colorScheme: face[1], reducedMotion: 'reduce', viewport: { width: 1280, height: 900 } });
      contexts.push(page.context());
    }
    await signedInAs(await kubecast.token(user));
    const began = Date.now();
    await Promise.all(contexts.map(async (context, n) => {
      for (const name of Object.keys(addresses())) await open(context, name, n);
    }));
    await catchesUp(); // more tabs than HTTP/1.1 has connections
    opening = Date.now() - began;
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
    expect(tabs.flatMap(({ title, complaints }) => complaints.map((one) => `${title}: ${one}`))).toEqual([]);
  });

  test('a job is on screen from its first state to its last', async () => {
    const rows: Record<string, string> = { mine: 'li[data-name=lives] .mine-state', jobs: '[data-name=lives] .state-name', pods: '[data-name^=lives-] .state-name', history: 'tr:has(a[href*="/lives@"]) .state-name' };
    const showing = tabs.filter(({ name }) => rows[name]);
    const seen = showing.map(() => [] as string[]);
    await Promise.all(showing.map(async ({ page, name }, n) => {
      await page.exposeFunction('shows', (state: string) => seen[n]?.at(-1) !== state && seen[n]?.push(state));
      await page.evaluate((selector) => {
        const look = (): void => {
          const state = document.querySelector(selector)?.textContent;
          if (state) (window as unknown as { shows: (state: string) => void }).shows(state);
        };
        new MutationObserver(look).observe(document.body, { subtree: true, childList: true, characterData: true });
      }, rows[name] ?? '');
    }));
    const wanted = ({ name, words }: Tab): string[] => (name === 'pods' ? [words.Creating, words.Running, words.Completed] : [words.Pending, words.Running, words.Succeeded]);
    /** Each state lasts until it is on all screens: who asks now and then does not see what is shorter. */
    const haveSeen = async (states: number): Promise<void> => {
      const inOrder = expect.poll(() => showing.map((tab, n) => [tab.title, ...(seen[n] ?? []).filter((state) => wanted(tab).includes(state))])).toEqual(showing.map((tab) => [tab.title, ...wanted(tab).slice(0, states)]));
      await inOrder.catch(async (error: unknown) => {
        // A page that is given no frames is another fault than one that is told nothing.
        await each(givesFrames).catch((none: unknown) => console.error(String(none)));
        throw error;
      });
    };
    await kubecast.submit(namespace, 'lives', { start: 600, run: 600, owner: user });
    try {
      await haveSeen(1);
      await kubecast.now('start', namespace, 'lives');
      await haveSeen(2);
    } finally {
      await kubecast.now('start', namespace, 'lives');
      await kubecast.now('end', namespace, 'lives');
      await kubecast.waitComplete(namespace, 'lives');
      ended += 1; // also if it was not seen: the other tests count it
    }
    await haveSeen(3);
    await catchesUp(); // the overview asks the history again a while after an end; the next test wants it as it was
  });

  test('the gateway is killed and comes back', async () => {
    await kubecast.killGateway();
    await isTold(async (tab) => {
      await status(tab, 'reconnecting');
      await tab.page.getByText(tab.words.asOf).waitFor();
      await upToDate(tab).waitFor(); // as it was
    });
    await playRound();
    await kubecast.startGateway();
    await catchesUp();
  });

  test('the cluster is away, and comes back', async () => {
    await kubecast.line.cut();
    await isTold(async (tab) => {
      await status(tab, 'unreachable');
      await tab.page.getByText(tab.words.clusterAway).waitFor();
      await upToDate(tab).waitFor();
    });
    await playRound();
    await kubecast.line.mend();
    await catchesUp();
  });

  test('a permission is taken away and given again', async () => {
    await kubecast.kubectl(['delete', 'clusterrolebinding', 'of-the-test']);
    const again = ({ page, words }: Tab): Locator => page.locator('main').getByRole('button', { name: words.tryAgain }).first();
    await isTold(async (tab) => {
      await upToDate(tab).waitFor({ state: 'detached' });
      await again(tab).waitFor();
    });
    await playRound();
    await kubecast.kubectl(['create', 'clusterrolebinding', 'of-the-test', '--clusterrole=platform-viewer', `--user=${user}`]);
    // A click is a single question, so the gateway has to have heard of it.
    const headers = { Authorization: `Bearer ${await kubecast.token(user)}` };
    await expect.poll(async () => (await fetch(`${kubecast.url}/api/v1/nodes`, { headers })).status).toBe(200);
    await each(async (tab) => {
      await Promise.any([again(tab).click(), upToDate(tab).waitFor()]); // a question that was under way may have found it first
    });
    await catchesUp();
  });

  test('tabs are frozen and thawed', async () => {
    await each((tab) => tab.cdp.send('Page.setWebLifecycleState', { state: 'frozen' }));
    await playRound();
    await each((tab) => tab.cdp.send('Page.setWebLifecycleState', { state: 'active' }));
    await catchesUp();
  });

  test('a token expires', async () => {
    // It has to last until all tabs have come with it, which takes them as long as it did at first.
    const lasts = 25 + Math.ceil(opening / 1_000);
    const token = await kubecast.token(user, [], `${lasts}s`);
    await each(async (tab) => {
      await tab.page.evaluate((kept) => sessionStorage.setItem('kubecast.token', kept), token);
      await tab.page.reload();
      await status(tab, 'live');
      await upToDate(tab).waitFor();
    });
    await isTold(async (tab) => {
      await tab.page.getByRole('alert').getByText(tab.words.signedOut).waitFor({ timeout: lasts * 1_000 + 60_000 });
      expect(await upToDate(tab).count()).toBe(0);
      expect(new URL(tab.page.url()).hash).toBe(addresses()[tab.name]); // to which signing in leads back
    });
  });
});

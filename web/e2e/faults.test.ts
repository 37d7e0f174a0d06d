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

/** The four faces of the portal, and what they say. */
const faces = [
  ['en-GB', 'light'],
  ['zh-CN', 'dark'],
  ['en-GB', 'dark'],
  ['zh-CN', 'light'],
] as const;
const said = {
  'en-GB': {
    Succeeded: 'Succeeded', Complete: 'Complete', Running: 'Running', Pending: 'Pending',
    clusterAway: 'The gateway has lost its connection to the cluster.', asOf: /^What is shown is as of \d/, signIn: 'Sign in', signedOut: 'You have been signed out',
  },
  'zh-CN': {
    Succeeded: '已成功', Complete: '已完成', Running: '运行中', Pending: '等待中',
    clusterAway: '网关与集群的连接已中断。', asOf: /^显示的内容截至 /, signIn: '登录', signedOut: '您已退出登录',
  },
} as const;

interface Tab {
  readonly page: Page;
  readonly name: string;
  readonly words: (typeof said)[keyof typeof said];
  /** What is wrong with it is told by this. */
  readonly title: string;
  readonly chinese: boolean;
  readonly complaints: string[];
  readonly cdp: CDPSession;
}

describe.skipIf(lacking !== undefined)(`every page, whatever happens${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let pod = '';
  const contexts: BrowserContext[] = [];
  const tabs: Tab[] = [];
  /** How many jobs have ended by now, and labels been changed. */
  let round = 0;

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
        return page.locator('.chart-says').first().filter({ hasText: new RegExp(`^${round}\\D|\\D${round}\\D`) });
      case 'jobs':
        return page.locator(`[data-name=${last}]`).getByText(words.Complete);
      case 'pods':
        return page.locator(`[data-name^=${last}-]`).getByText(words.Succeeded);
      case 'history':
        return page.locator('tr', { has: page.getByRole('link', { name: last, exact: true }) }).getByText(words.Succeeded);
      case 'kind':
        return page.locator('tr', { has: page.getByRole('link', { name: node, exact: true }) }).getByText(round % 2 === 1 ? /^Ready,SchedulingDisabled$/ : /^Ready$/);
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
  };

  /** All tabs at once; each has to succeed, and is named if it does not. */
  const each = async (does: (tab: Tab) => Promise<unknown>): Promise<void> => {
    const done = await Promise.allSettled(tabs.map(does));
    const failed = done.flatMap((one, n) => (one.status === 'rejected' ? [`${tabs[n]?.title}: ${String(one.reason).split('\n', 3).join(' ')}`] : []));
    if (failed.length > 0) throw new Error(failed.join('\n'));
  };
  const phase = (tab: Tab, is: string): Promise<void> => tab.page.locator(`.connection-label[data-phase=${is}]`).waitFor({ timeout: 15_000 });
  const catchesUp = async (within: number): Promise<void> => {
    const began = Date.now();
    await each(async (tab) => {
      await upToDate(tab).waitFor({ timeout: within });
      await phase(tab, 'live');
      await tab.page.waitForFunction(() => document.querySelector('[data-dated], .dated-why, .job-trouble, .notice') === null, undefined, { timeout: 5_000 });
    });
    console.error(`all ${tabs.length} tabs were right after ${Date.now() - began} ms`);
  };
  /** What each page says meanwhile: in its language, and legible. */
  const isTold = async (look: (tab: Tab) => Promise<unknown>): Promise<void> => {
    await each(look);
    await each(async (tab) => {
      const notices = await tab.page.locator('.notice').allTextContents();
      if (notices.length > 0) throw new Error(notices.join());
      const english = tab.chinese ? await englishOf(tab.page) : [];
      if (english.length > 0) throw new Error(`in English: ${english.join(' | ')}`);
    });
    // One after the other: together they would only wait for each other.
    for (const tab of tabs) expect([tab.title, await violations(tab.page)]).toEqual([tab.title, []]);
  };

  const open = async (context: BrowserContext, name: string, [locale, scheme]: (typeof faces)[number]): Promise<void> => {
    const page = await context.newPage();
    const complaints: string[] = [];
    page.on('pageerror', (error) => complaints.push(error.message));
    const cdp = await context.newCDPSession(page);
    await page.goto(`${kubecast.url}/${addresses()[name]}`);
    tabs.push({ page, name, words: said[locale], title: `${name}, ${locale}, ${scheme}`, chinese: locale === 'zh-CN', complaints, cdp });
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
    await Promise.all(faces.map(async (face, n) => {
      const context = contexts[n];
      for (const name of Object.keys(addresses())) if (context) await open(context, name, face);
    }));
    await catchesUp(30_000); // more tabs than HTTP/1.1 has connections
  }, 180_000);

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
    expect(tabs.flatMap(({ title, complaints }) => complaints.map((one) => `${title}: ${one}`))).toEqual([]);
  });

  test('the gateway is killed and comes back', { timeout: 120_000 }, async () => {
    await kubecast.killGateway();
    await isTold(async (tab) => {
      await phase(tab, 'reconnecting');
      await tab.page.getByText(tab.words.asOf).waitFor({ timeout: 5_000 });
      await upToDate(tab).waitFor({ timeout: 5_000 }); // as it was
    });
    await playRound();
    await kubecast.startGateway();
    await catchesUp(15_000);
  });

  test('the cluster is away, and comes back', { timeout: 120_000 }, async () => {
    await kubecast.line.cut();
    await isTold(async (tab) => {
      await phase(tab, 'stale');
      await tab.page.getByText(tab.words.clusterAway).waitFor({ timeout: 5_000 });
      await upToDate(tab).waitFor({ timeout: 5_000 });
    });
    await playRound();
    await kubecast.line.mend();
    await catchesUp(15_000);
  });

  test('a permission is taken away and given again', { timeout: 120_000 }, async () => {
    await kubecast.kubectl(['delete', 'clusterrolebinding', 'of-the-test']);
    await isTold(async (tab) => {
      await upToDate(tab).waitFor({ state: 'detached', timeout: 15_000 });
      await tab.page.locator('[role=alert], .job-trouble').first().waitFor({ timeout: 15_000 });
    });
    await playRound();
    await kubecast.kubectl(['create', 'clusterrolebinding', 'of-the-test', '--clusterrole=platform-viewer', `--user=${user}`]);
    await catchesUp(15_000);
  });

  test('tabs are frozen and thawed', { timeout: 120_000 }, async () => {
    await each((tab) => tab.cdp.send('Page.setWebLifecycleState', { state: 'frozen' }));
    await playRound();
    await each((tab) => tab.cdp.send('Page.setWebLifecycleState', { state: 'active' }));
    await catchesUp(10_000);
  });
});

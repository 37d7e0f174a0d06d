// Firefox and WebKit: what the SDK makes of their connections, locks and channels, and of a page that wakes; and the portal's log in them.

import { existsSync } from 'node:fs';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { browsers, type Engine, type Tab } from './support/engines.ts';
import { Front } from './support/front.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { isBuilt, mockToken, startMock } from './support/portal.ts';
import { missing } from './support/skip.ts';
import { configMap, tabsPage, type Told } from './support/tabspage.ts';

const lacking = missing({ [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const usable = browsers.filter(({ needs }) => !missing(Object.fromEntries(needs.map((path) => [path, existsSync(path)]))));
const unbuilt = missing({ 'the built portal (npm run build)': isBuilt });
/** How long a page that wakes may still call live what it showed before, in milliseconds: what the client's patience is, and half a second. */
const waking = 2_500;

describe.skipIf(lacking !== undefined)(`other browsers${lacking ? ` (${lacking})` : ''}`, () => {
  let kubecast: Kubecast;
  let front: Front;
  let token: string;

  beforeAll(async () => {
    let html: string;
    [kubecast, html] = await Promise.all([Kubecast.start(), tabsPage()]);
    token = await kubecast.token('mara.lindqvist', ['platform']);
    front = await Front.of(kubecast.url, html);
  });

  afterAll(async () => {
    await Promise.allSettled([front?.stop(), kubecast?.stop()]);
  });

  const told = (tab: Tab): Promise<Told> => tab.evaluate<Told>('window.told()');
  const write = (n: string): Promise<string> => kubecast.kubectl(['apply', '-f', '-'], configMap(n));
  const seen = (tabs: readonly Tab[], row: string): Promise<unknown> =>
    Promise.all(tabs.map((tab) => expect.poll(async () => await told(tab), { interval: 20, timeout: 30_000 }).toMatchObject({ status: 'live', rows: [`counted ${row}`] })));

  describe.each(usable)('$name', ({ name, launch }) => {
    let engine: Engine;

    beforeEach(async () => {
      engine = await launch();
      return () => engine.stop();
    });

    const open = (more = ''): Promise<Tab> => engine.open(`${front.url}/tabs-page#token=${token}${more}`);

    test('eight tabs are live on one stream; that is cut, and then its tab is closed, and nothing is missing', async () => {
      let tabs: Tab[] = [];
      while (tabs.length < 8) tabs.push(await open());
      await write(`${name} first`);
      await seen(tabs, `${name} first`);
      await expect.poll(() => front.streams.size).toBe(1);

      front.cut();
      await write(`${name} cut`);
      await seen(tabs, `${name} cut`);
      const [again] = front.streams;
      expect(again?.lastEventId).not.toBe('');

      for (const [n, tab] of tabs.entries()) {
        if ((await told(tab)).streams === 0) continue;
        tabs = tabs.filter((_, other) => other !== n);
        await tab.close();
        break;
      }
      expect(tabs).toHaveLength(7);
      await write(`${name} closed`);
      await seen(tabs, `${name} closed`);
      await expect.poll(() => front.streams.size).toBe(1);
      const [taken] = front.streams;
      expect(taken?.lastEventId).not.toBe('');
    });

    test('what a machine shows that has slept is not called live for long, and soon is', async () => {
      const tab = await open();
      await write(`${name} awake`);
      await seen([tab], `${name} awake`);
      await tab.evaluate('void (window.log = [], window.onTold = (told) => window.log.push({ at: Date.now(), ...told }))');

      front.silence();
      engine.sleep(true);
      await write(`${name} asleep`);
      await new Promise((resolve) => setTimeout(resolve, 7_000)); // longer than a busy page stands still
      engine.sleep(false);
      const woken = Date.now();
      await seen([tab], `${name} asleep`);
      const log = await tab.evaluate<(Told & { at: number })[]>('window.log');
      const known = log.find(({ rows, status }) => rows[0] === `counted ${name} asleep` || status !== 'live');
      expect((known?.at ?? Infinity) - woken).toBeLessThan(waking);
    });

    test('a page that nobody looks at has no stream, and is right when it is looked at again', async () => {
      const tab = await open('&attend');
      await write(`${name} shown`);
      await seen([tab], `${name} shown`);
      await tab.show(false);
      await expect.poll(() => tab.evaluate('document.visibilityState')).toBe('hidden');
      await expect.poll(() => front.streams.size).toBe(0);
      await write(`${name} hidden`);
      await tab.show(true);
      await seen([tab], `${name} hidden`);
    });
  });
});

describe.skipIf(unbuilt !== undefined).each(usable)(`the portal's log in $name${unbuilt ? ` (${unbuilt})` : ''}`, ({ launch }) => {
  test('has its colours, is copied in whole lines with their ends, and what is selected stays while lines come', async () => {
    const gateway = await startMock();
    const mara = mockToken('mara');
    gateway.users.set(mara, {});
    gateway.cluster.put('pods', { metadata: { name: 'train-0', namespace: 'team-a' }, spec: { containers: [{ name: 'main' }] }, status: { phase: 'Running' } });
    for (let n = 0; n < 300; n++) gateway.logs.write('train-0', `\x1b[31mstep ${n}\x1b[0m done`);
    const engine = await launch();
    try {
      const tab = await engine.open(`${gateway.url}/#token=${mara}`);
      const ask = (what: string): Promise<unknown> => tab.evaluate(`(() => { ${what} })()`);
      const until = (what: string): Promise<void> => expect.poll(() => ask(what), { interval: 100, timeout: 60_000 }).toBe(true);
      await until("const button = [...document.querySelectorAll('button')].find(({ textContent }) => textContent === 'Sign in'); button?.click(); return button !== undefined");
      await until("return document.querySelector('.account-name') !== null");
      await ask("location.hash = '#pods/team-a/train-0'");
      await until("return document.querySelector('.log-lines')?.textContent.includes('step 299 done') === true");
      expect(await ask("const line = document.querySelector('.log-text'); return getComputedStyle(line.querySelector('.ansi-red')).color !== getComputedStyle(line).color")).toBe(true);

      const part = (n: number): string => `[...document.querySelectorAll('.log-text')].find(({ textContent }) => textContent === 'step ${n} done').firstChild.firstChild`;
      await ask(`getSelection().setBaseAndExtent(${part(290)}, 1, ${part(293)}, 2)`);
      const height = await ask("return document.querySelector('.log-lines').scrollHeight");
      await ask('return new Promise((done) => requestAnimationFrame(() => done(true)))'); // the page has seen it
      for (let n = 300; n < 600; n++) gateway.logs.write('train-0', `step ${n} done`);
      await until(`return document.querySelector('.log-lines').scrollHeight > ${String(height)}`);
      expect(await ask('return getSelection().toString().includes("tep 290 done")')).toBe(true);
      // A copy of the browser's own would want a person.
      const copied = await ask(
        "const data = new DataTransfer(); const copy = Object.defineProperty(new Event('copy', { bubbles: true, cancelable: true }), 'clipboardData', { value: data }); document.querySelector('.log-lines').dispatchEvent(copy); return data.getData('text/plain')",
      );
      expect(copied).toBe('step 290 done\nstep 291 done\nstep 292 done\nstep 293 done\n');
    } finally {
      await Promise.allSettled([engine.stop(), gateway.stop()]);
    }
  });
});

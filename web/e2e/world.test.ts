// What three people ask of the portal, of a world that is scripted: somebody who trains models, an administrator of 20,000 pods, somebody
// with a keyboard alone. Each answer is counted in clicks. The gateway is the real one.

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { gatewayPath, hasGateway } from './support/gateway.ts';
import { crashes, days, hours, mara, over, running, ScriptedWorld, team, unschedulable, waitsFor } from './support/scriptedworld.ts';
import { time } from './support/scriptedapi.ts';
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
    world.podEnds('sweep', 1, 'Error', { ago: 6 * days, ran: 2 * hours });
    world.fails('sweep', { ago: 6 * days, ran: 2 * hours });
    world.runs('held', { gpus: 4, node: 'node-2', namespace: 'team-nlp', owner: 'ines.carvalho' });
    for (const [namespace, owner] of [['team-recsys', mara], ['team-nlp', 'ines.carvalho']] as const) {
      world.runs('survey', { ago: 6 * days + 2 * hours, namespace, owner });
      world.podEnds('survey', 1, 'Error', { ago: 6 * days, ran: 2 * hours, namespace });
      world.fails('survey', { ago: 6 * days, ran: 2 * hours, namespace });
    }
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

  const open = async (hash: string, bearer = token): Promise<void> => {
    await page.context().addInitScript((kept) => sessionStorage.setItem('kubecast.token', kept), bearer);
    await page.goto(`${world.gateway.url}/${hash}`);
    await page.locator('.connection-live').waitFor();
  };
  const mine = (name: string) => page.locator('.mine li', { has: page.getByRole('link', { name, exact: true }) });
  const fact = (name: string): Locator => page.locator('.job-facts .fact', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
  /** Until the gateway has recorded how the pod of a job ended. */
  const recorded = (job: string, exitCode: number): Promise<void> =>
    expect.poll(async () => {
      const answer = await fetch(`${world.gateway.url}/history/apis/batch/v1/namespaces/${team}/jobs/${job}?view=runs`, { headers: { Authorization: `Bearer ${token}` } });
      return ((await answer.json()) as { items: { exitCode: number | null }[] }).items[0]?.exitCode;
    }).toBe(exitCode);
  /** Clicks one after another, and says how many clicks that were. */
  const counted = async (...targets: readonly Locator[]): Promise<number> => {
    for (const target of targets) await target.click();
    return targets.length;
  };
  /** Presses a key until what has the focus is called so, or stands in such a row. */
  const keysTo = async (key: string, name: string | RegExp): Promise<void> => {
    for (let n = 0; n < 60; n++) {
      await page.keyboard.press(key);
      const [own = '', row = ''] = await page.evaluate(() => [document.activeElement, document.activeElement?.closest('tr')].map((one) => one?.textContent?.trim()));
      if (typeof name === 'string' ? own === name : name.test(row)) return;
    }
    throw new Error(`${String(name)} is not within reach of ${key}`);
  };
  const logLines = () => page.locator('.log-line .log-text').allTextContents();

  test('a job runs out of memory while somebody looks, and its pod tells after it: why is on Mine without a click, its last lines are one click away', async () => {
    await open('#mine');
    world.runs('llama-finetune', { ago: 10 * minutes });
    await mine('llama-finetune').getByText('Running').waitFor();
    world.api.write(team, 'llama-finetune-a', 'main', 'step 1 loss 1.99', 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB');
    world.fails('llama-finetune', { ran: 10 * minutes });
    await mine('llama-finetune').getByText('No retries left').waitFor();
    world.podEnds('llama-finetune', 137, 'OOMKilled', { ran: 10 * minutes });
    await mine('llama-finetune').getByText(why).waitFor();
    await mine('llama-finetune').getByRole('link').click();
    await page.locator('.job-why').getByText(why).waitFor();
    await expect.poll(logLines).toContain('torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB');

    await page.evaluate((to) => (location.hash = to), `#jobs?ns=${team}`);
    const said = page.locator('.table-row[data-name="llama-finetune"] .state-detail');
    await said.getByText(why).waitFor();
    const cut = (): Promise<boolean> => said.evaluate((one) => one.scrollWidth > one.clientWidth || one.scrollHeight > one.clientHeight);
    expect(await cut()).toBe(false);
    await page.setViewportSize({ width: 360, height: 740 });
    await expect.poll(cut).toBe(false);
    const [name, sentence] = await Promise.all([page.locator('.table-row[data-name="llama-finetune"] .row-link'), said].map((one) => one.boundingBox()));
    expect((name?.y ?? NaN) + (name?.height ?? NaN)).toBeLessThanOrEqual(sentence?.y ?? NaN);
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

  test('what waits, and what was preempted, say why in words; what never ran has no run time, and each its own Events', async () => {
    world.job('resnet', { gpus: 64, status: { active: 1, ready: 0, startTime: time() } });
    world.pod('resnet-a', unschedulable(), { of: 'resnet', node: '', gpus: 64 });
    world.event('Pod', team, 'resnet-a', 'FailedScheduling', '0/10 nodes are available: 9 Insufficient nvidia.com/gpu.');
    world.runs('whisper', { ago: minutes, node: 'node-2' });
    world.event('Pod', team, 'whisper-a', 'Preempted', 'Preempted by pod 5f2b-urgent on node node-2');
    await open('#mine');
    await mine('whisper').getByText('Running').waitFor();
    await mine('resnet').getByText('too little nvidia.com/gpu free (9 of 10)').waitFor();
    world.api.endLog(team, 'whisper-a', 'main');
    const taken = { type: 'DisruptionTarget', status: 'True', reason: 'PreemptionByScheduler', message: 'default-scheduler: preempting to accommodate a higher priority pod', lastTransitionTime: time() };
    world.now('pods', team, 'whisper-a', { ...over(143, 'Error', 0, minutes), conditions: [taken] });
    world.api.remove('pods', team, 'whisper-a');
    world.fails('whisper', { ran: minutes });
    await mine('whisper').getByText('preempted on node-2 for a pod of higher priority').waitFor();

    await mine('resnet').getByRole('link').click();
    await page.locator('.job-why').getByText('too little nvidia.com/gpu free').waitFor();
    await page.locator('.job-why').getByText('It fits on no node, however free: a pod asks for 64 nvidia.com/gpu, the largest node has 8.').waitFor();
    expect(await fact('Run time').textContent()).toBe('–');
    await page.getByRole('tab', { name: /^Events/ }).click();
    await page.locator('.job-main').getByText('FailedScheduling').waitFor();
    expect(await page.locator('.job-main').textContent()).not.toContain('Preempted');
  });

  test('the run of last week is two clicks from Mine, also when it is gone and another one has its name, and a notice leads to the run that it means', async () => {
    world.runs('nightly', { ago: minutes });
    await open('#mine');
    await mine('nightly').getByText('Running').waitFor();
    world.podEnds('nightly', 1, 'Error', { ran: minutes });
    await recorded('nightly', 1); // or the notice would have what was known by then
    world.fails('nightly', { ran: minutes });
    await mine('nightly').getByText('exit 1').waitFor();
    for (const [plural, name] of [['jobs', 'nightly'], ['pods', 'nightly-a'], ['jobs', 'sweep'], ['pods', 'sweep-a']] as const) world.api.remove(plural, team, name);
    world.runs('nightly');
    world.runs('sweep');
    await mine('nightly').getByText('Running').waitFor();

    await page.locator('.bell-button').click();
    await page.locator('.inbox-items a', { hasText: /nightly.*exit 1/ }).click();
    await page.locator('.job-why').getByText('exit 1').waitFor();
    expect(await page.locator('.job-head').textContent()).toContain('Failed');

    await page.evaluate(() => (location.hash = '#mine'));
    await mine('sweep').getByText('Running').waitFor();
    const clicks = await counted(page.getByRole('link', { name: 'History', exact: true }), page.locator('.plain-table tbody tr', { hasText: 'sweep' }).filter({ hasText: 'exit 1' }).getByRole('link').first());
    await page.locator('.job-why').getByText('exit 1').waitFor();
    expect(clicks).toBe(2);
    expect(await page.locator('.timeline').textContent()).toContain('Failed');
    // Another one has its name, so kubectl can say nothing of it.
    await page.getByText('another one has its name now').waitFor();
    expect(await page.locator('.copied').count()).toBe(0);
    expect(await page.locator('.job-back').textContent()).toBe('← History');
  });

  test('the way back from a job names the page of which one came, however often one goes, and nothing of History is beyond the edge of a phone', async () => {
    await open('#mine');
    const rows = { Mine: page.locator('.mine li a').first(), History: page.locator('.plain-table tbody a').first() };
    for (const from of ['Mine', 'History', 'Mine', 'History'] as const) {
      await page.getByRole('link', { name: from, exact: true }).click();
      await rows[from].click();
      await page.locator('.job-back').getByText(`← ${from}`, { exact: true }).waitFor();
    }
    await page.setViewportSize({ width: 360, height: 740 });
    await page.locator('.job-back').click();
    await rows.History.waitFor();
    await expect.poll(() => page.locator('.plain-scroller').evaluate((one) => one.scrollWidth - one.clientWidth)).toBe(0);
    expect(await page.locator('.plain-table tbody tr').first().textContent()).toContain('team-');
  });

  test('which team uses the GPUs and what is broken now stand on the overview without a click', async () => {
    await open('#overview');
    const part = (name: RegExp) => page.getByRole('region', { name });
    await part(/^GPUs.*of 80/).locator('li', { hasText: 'team-nlp' }).locator('.wrong-count', { hasText: /^4$/ }).waitFor();
    await part(/^GPUs by node/).locator('li', { hasText: 'node-2' }).waitFor();
    for (const [of, count] of [['NotReady', '1'], ['Ready,SchedulingDisabled', '1'], ['node-5', 'DiskPressure']] as const) {
      await part(/^Nodes$/).locator('li').filter({ has: page.getByRole('link', { name: of, exact: true }) }).locator('.wrong-count', { hasText: count }).waitFor();
    }
    await part(/^Nodes$/).locator('li', { hasText: 'NotReady' }).getByText('node-3', { exact: true }).waitFor();
    await part(/^Why jobs failed/).locator('li', { hasText: 'OOM-killed' }).waitFor();
  });

  test('on a wall, where nobody scrolls, nothing is hidden on screens of any usual size, also when more goes wrong', async () => {
    await open('#overview');
    await page.getByRole('link', { name: 'Wall' }).click();
    await page.getByRole('region', { name: /^GPUs.*of 80/ }).locator('li', { hasText: 'team-nlp' }).waitFor();
    const warnings = page.getByRole('region', { name: /^Warnings/ }).locator('li');
    const hidden = (): Promise<number> => page.locator('.wall').evaluate((wall) => wall.scrollHeight - wall.clientHeight);
    const textSize = (): Promise<number> => page.locator('.wrong-part').first().evaluate((one) => parseFloat(getComputedStyle(one).fontSize));
    const sizes = [[1920, 1080, 22], [1366, 768, 14], [1280, 720, 14], [1024, 768, 12], [3840, 2160, 40]] as const;
    const fits = async (): Promise<void> => {
      for (const [width, height, readable] of sizes) {
        await page.setViewportSize({ width, height });
        await expect.poll(hidden, { message: `${width}x${height}` }).toBe(0);
        expect(await textSize(), `${width}x${height}`).toBeGreaterThanOrEqual(readable);
        expect((await page.locator('.chart svg').boundingBox())?.height, `${width}x${height}`).toBeGreaterThan(20);
      }
    };
    await page.locator('.chart').waitFor();
    await fits();
    expect(new Set(await page.locator('.tile').evaluateAll((tiles) => tiles.map((tile) => tile.getBoundingClientRect().height))).size).toBe(1);
    await page.setViewportSize({ width: 1280, height: 720 });
    const reasons = ['BackOff', 'FailedMount', 'Unhealthy', 'NodeNotReady', 'Evicted', 'FailedCreatePodSandBox'];
    for (const reason of reasons) world.event('Pod', 'team-nlp', 'held-a', reason, `${reason} of a test`);
    await expect.poll(() => warnings.count()).toBe(6);
    await fits();
  });

  test('a node is in one state in the table of nodes, its chips and its own page, in the words of kubectl', async () => {
    await open('#kinds/nodes');
    const states = page.locator('.plain-table tbody .state-mark');
    await expect.poll(() => states.count()).toBe(10);
    for (const [node, state] of [['node-3', 'NotReady'], ['node-7', 'Ready,SchedulingDisabled']] as const) {
      const row = page.locator('.plain-table tbody tr', { hasText: node });
      expect(await row.locator('.state-mark').textContent()).toBe(state);
      await page.getByRole('button', { name: `${state} 1`, exact: true }).waitFor();
      await row.getByRole('link').click();
      await page.locator('.job-head .state-name', { hasText: new RegExp(`^${state}$`) }).waitFor();
      await page.goBack();
    }
    const pressed = page.locator('.plain-table tbody tr', { hasText: 'node-5' });
    await expect.poll(() => pressed.locator('td').allTextContents()).toEqual(expect.arrayContaining(['Ready DiskPressure', '8']));
  });

  test('by keyboard alone: why a job failed, the run of last week, who has the GPUs and what is broken', async () => {
    await open('#mine');
    await mine('llama-finetune').getByText(why).waitFor();
    await keysTo('j', 'llama-finetune');
    await page.keyboard.press('Enter');
    await page.locator('.job-why').getByText(why).waitFor();
    await keysTo('Tab', 'History');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'sweep' }).first().waitFor();
    await keysTo('j', /^sweep.*exit 1/);
    await page.keyboard.press('Enter');
    await page.locator('.job-why').getByText('exit 1').waitFor();
    await page.keyboard.press('Control+k');
    await page.keyboard.type('overview');
    await page.getByRole('option', { name: 'Overview', selected: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('region', { name: /^GPUs.*of 80/ }).locator('li', { hasText: 'team-nlp' }).waitFor();
    await keysTo('Tab', 'NotReady');
    await page.keyboard.press('Enter');
    await page.getByRole('link', { name: 'node-3' }).waitFor();
  });

  test('of 3,000 lines the first can be reached, a search goes through them, and what is selected is copied as lines and stays while more come', async () => {
    world.runs('long', { ago: minutes });
    world.api.write(team, 'long-a', 'main', ...Array.from({ length: 3_000 }, (_, n) => `line ${n}`));
    await page.context().grantPermissions(['clipboard-read', 'clipboard-write']);
    await open(`#jobs/${team}/long`);
    await expect.poll(async () => (await logLines()).at(-1)).toBe('line 2999');
    await expect.poll(async () => {
      const earlier = page.locator('.log-earlier');
      if (await earlier.isVisible()) await earlier.click({ timeout: 1_000 }).catch(() => undefined); // it goes with the last of them
      await page.locator('.log-lines').evaluate((lines) => lines.scrollTo(0, 0));
      return (await logLines())[0];
    }).toBe('line 0');

    const row = (text: string): Locator => page.locator('.log-line', { has: page.getByText(text, { exact: true }) });
    await row('line 2').locator('.log-text').dblclick();
    await row('line 5').locator('.log-text').click({ modifiers: ['Shift'] });
    await page.keyboard.press('Control+c');
    const copied = (): Promise<string> => page.evaluate(() => navigator.clipboard.readText());
    expect(await copied()).toBe('line 2\nline 3\nline 4\nline 5\n');
    world.api.write(team, 'long-a', 'main', ...Array.from({ length: 60 }, (_, n) => `more ${n}`));
    await page.locator('.log-lines').evaluate((lines) => lines.scrollBy(0, 1));
    await expect.poll(() => page.locator('.log-lines > div').evaluate((lines) => lines.getBoundingClientRect().height)).toBeGreaterThan(3_050 * 18);
    await page.keyboard.press('Control+c');
    expect(await copied()).toBe('line 2\nline 3\nline 4\nline 5\n');

    await page.getByRole('searchbox', { name: 'Search in the log' }).fill('line 2500');
    await page.keyboard.press('Enter');
    await row('line 2500').waitFor();
    expect(await page.locator('.log-count').textContent()).toContain('1 of 1');
  });

  test.each(['America/New_York', 'Asia/Shanghai', 'UTC'])('a run is told in the time of %s, its states and its lines alike, and in UTC where that is chosen', async (timezoneId) => {
    const { page: there, complaints: said } = await openPage(browser, { locale: 'en-GB', timezoneId, viewport: { width: 1280, height: 900 } });
    await there.context().addInitScript((kept) => sessionStorage.setItem('kubecast.token', kept), token);
    await there.goto(`${world.gateway.url}/#jobs/${team}/download`);
    const at = async (of: Locator): Promise<readonly [told: string, ms: number]> => {
      await of.waitFor();
      return [(await of.textContent()) ?? '', Date.parse((await of.getAttribute('datetime')) ?? '')];
    };
    const began = there.locator('.timeline li[data-state=Running] .timeline-at time');
    const line = there.locator('.log-line time').first();
    const check = async (timeZone: string): Promise<void> => {
      const [[state, stateAt], [lineTold, lineAt]] = [await at(began), await at(line)];
      expect(state.replace(/ UTC$/, '')).toBe(new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium', timeZone }).format(stateAt));
      expect(lineTold.trimEnd()).toBe(new Intl.DateTimeFormat('en-GB', { timeStyle: 'medium', timeZone }).format(lineAt));
    };
    await check(timezoneId);
    await there.getByLabel('Clock').selectOption('utc');
    await there.waitForLoadState();
    await expect.poll(() => began.textContent()).toContain('UTC');
    await check('UTC');
    await closeContext(there.context());
    expect(said).toEqual([]);
  });

  describe('to somebody who may see two of the namespaces', () => {
    const own = [team, 'team-recsys'];
    let narrow: string;
    beforeAll(async () => {
      narrow = await world.gateway.token(mara, own);
      world.runs('tuning', { ago: minutes });
      for (const [name, namespace, owner] of [['tuned', 'team-recsys', mara], ['foreign', 'team-nlp', 'ines.carvalho']] as const) {
        world.runs(name, { namespace, owner, ago: minutes, gpus: 2 });
        world.podEnds(name, 137, 'OOMKilled', { namespace, ran: minutes });
        world.fails(name, { namespace, ran: minutes });
      }
      // What is removed, or not shown, must have been there to be told.
      await are('Failed', 'foreign', 'survey', 'survey', 'tuned');
      for (const [plural, name] of [['jobs', 'survey'], ['pods', 'survey-a']] as const) for (const namespace of ['team-recsys', 'team-nlp']) world.api.remove(plural, namespace, name);
      world.runs('survey', { namespace: 'team-recsys' });
      await are('Deleted', 'survey', 'survey');
    });
    /** All jobs that are or were, as far as they are told to whoever has the token. */
    const pastOf = async (bearer: string): Promise<{ name: string; namespace: string; state: string }[]> => {
      const answer = await fetch(`${world.gateway.url}/history/apis/batch/v1/jobs?limit=500`, { headers: { Authorization: `Bearer ${bearer}` } });
      return ((await answer.json()) as { items: { name: string; namespace: string; state: string }[] }).items;
    };
    /** Until these of all jobs, and maybe others, are in a state. */
    const are = (state: string, ...names: readonly string[]): Promise<void> =>
      vi.waitFor(async () => expect((await pastOf(token)).filter((one) => one.state === state && names.includes(one.name)).map(({ name }) => name).sort()).toEqual(names), { timeout: 120_000, interval: 200 });
    const strange = /team-nlp|ines\.carvalho|foreign|held/;
    /** All that a page says, in whatever it says it. */
    const said = (): Promise<string> => page.evaluate(() => [document.body.innerText, ...[...document.querySelectorAll('*')].flatMap((one) => [...one.attributes].map(({ value }) => value))].join('\n'));

    test('why a job failed is one click from Mine, and the run of last week two, of whatever namespace of theirs', async () => {
      await open('#mine', narrow);
      await mine('tuned').getByText(why).waitFor();
      expect(await counted(mine('tuned').getByRole('link').first())).toBe(1);
      await page.locator('.job-why').getByText(why).waitFor();
      expect(await said()).not.toMatch(strange);

      await page.evaluate(() => (location.hash = '#mine'));
      await mine('tuned').waitFor();
      expect(await said()).not.toMatch(strange);
      const row = page.locator('.plain-table tbody tr', { hasText: 'survey' }).filter({ hasText: 'exit 1' });
      expect(await counted(page.getByRole('link', { name: 'History', exact: true }), row.getByRole('link').first())).toBe(2);
      await page.locator('.job-why').getByText('exit 1').waitFor();
      expect(await page.locator('.timeline').textContent()).toContain('Failed');
      expect(await page.locator('.job-head').textContent()).toContain('team-recsys');
      expect(await said()).not.toMatch(strange);
    });

    test('counts, search, overview and history have theirs, all of it, and nothing of others', async () => {
      const all = world.api.all('jobs').filter(({ metadata }) => own.includes(metadata.namespace ?? ''));
      await open('#jobs', narrow);
      await page.locator('.table-row[data-name="tuned"]').waitFor();
      await page.getByRole('button', { name: `All ${all.length}`, exact: true }).waitFor();
      expect(await said()).not.toMatch(strange);
      await page.evaluate(() => (location.hash = '#pods'));
      await page.getByRole('button', { name: `All ${world.api.all('pods').filter(({ metadata }) => own.includes(metadata.namespace ?? '')).length}`, exact: true }).waitFor();
      expect(await said()).not.toMatch(strange);

      await page.keyboard.press('Control+k');
      const field = page.getByRole('dialog').getByRole('combobox');
      for (const name of ['held', 'foreign', 'survey', 'tuned']) {
        await field.fill(name);
        // Once all of it has been answered.
        await page.locator('.palette-status', { hasText: /\d results?/ }).waitFor();
        const found = await page.getByRole('dialog').getByRole('option').allTextContents();
        expect([name, found.filter((one) => one.includes('team-nlp')), found.length > 0]).toEqual([name, [], name === 'survey' || name === 'tuned']);
      }
      await page.keyboard.press('Escape');

      await page.evaluate(() => (location.hash = '#overview'));
      await page.getByRole('region', { name: /^Why jobs failed/ }).locator('li', { hasText: 'OOM-killed' }).waitFor();
      const past = await pastOf(narrow);
      expect(new Set(past.map(({ namespace }) => namespace))).toEqual(new Set(own));
      const teams = page.getByRole('table', { name: 'Usage' }).locator('tbody tr');
      await expect.poll(async () => (await teams.locator('th').allTextContents()).sort()).toEqual([...own].sort());
      expect(await said()).not.toMatch(strange);

      await page.evaluate(() => (location.hash = '#history'));
      await page.locator('.plain-table tbody tr', { hasText: 'tuned' }).waitFor();
      await expect.poll(() => page.locator('.plain-table tbody tr').count()).toBe(past.length);
      expect(await said()).not.toMatch(strange);
    });
  });

  describe('beside another cluster', () => {
    let west: ScriptedWorld;
    beforeAll(async () => {
      west = await ScriptedWorld.start();
      west.runs('both', { ago: minutes, namespace: 'team-nlp' });
      west.runs('western', { ago: minutes });
      await world.serves({ west });
      const served = async (): Promise<void> => {
        const answer = await fetch(`${world.gateway.url}/clusters`, { headers: { Authorization: `Bearer ${token}` } });
        const { clusters } = (await answer.json()) as { clusters: { name: string; state: string }[] };
        expect(clusters.map(({ name, state }) => `${name} ${state}`)).toEqual(['default live', 'west live']);
      };
      await vi.waitFor(served, { timeout: 60_000, interval: 200 });
    });
    afterAll(async () => {
      await west?.stop();
      await world?.serves({});
    });

    test("one's own jobs and what is looked for are of both, and a link leads a new tab to the cluster that it is of", async () => {
      world.runs('both', { ago: 2 * minutes });
      await open('#mine');
      await expect.poll(() => page.locator('.mine li', { has: page.getByRole('link', { name: 'both', exact: true }) }).locator('.state-detail').allTextContents()).toEqual(['cluster west · team-nlp', 'cluster default · team-vision']);
      await page.keyboard.press('Control+k');
      await page.keyboard.type('both');
      await expect.poll(() => page.getByRole('dialog').getByRole('group').evaluateAll((groups) => groups.map((group) => [group.getAttribute('aria-label'), group.querySelector('[role=option]')?.textContent]))).toEqual([
        ['Job · default', 'both team-vision'], ['Pod · default', 'both-a team-vision'], ['Job · west', 'both team-nlp'], ['Pod · west', 'both-a team-nlp'],
      ]);
      await page.getByRole('dialog').getByRole('group', { name: 'Job · west' }).getByRole('option').click();
      await page.locator('.job-head').getByText('Running').waitFor();
      expect(await page.getByRole('combobox', { name: 'Cluster' }).inputValue()).toBe('west');
      const other = await page.context().newPage();
      await other.goto(page.url());
      await other.locator('.job-head').getByText('Running').waitFor();
      expect(await other.locator('.job-head').textContent()).toContain('team-nlp');
      const links = await other.locator('a[href^="#"]').evaluateAll((all) => all.map((link) => link.getAttribute('href') ?? '').filter((href) => !href.includes('cluster=west')));
      expect(links).toEqual([]);
    });

    test('all pages are of the cluster that is chosen, Back goes to the one before, and one that goes away keeps back its own rows only', async () => {
      const names = () => page.locator('.table-body .table-row .name, .table-body .table-row').evaluateAll((rows) => rows.map((one) => one.getAttribute('data-name')));
      world.runs('eastern', { ago: minutes });
      await open(`#jobs?q=ern&ns=${team}`);
      await page.locator('.table-row[data-name="eastern"]').waitFor();
      await page.getByRole('combobox', { name: 'Cluster' }).selectOption('west');
      await page.locator('.table-row[data-name="western"]').waitFor();
      expect(await names()).toEqual(['western']);
      west.fails('western', { ran: minutes });
      await page.locator('.table-row[data-name="western"]').getByText('Failed').waitFor();
      await page.goBack();
      await page.locator('.table-row[data-name="eastern"]').waitFor();
      expect(await names()).toEqual(['eastern']);

      await page.evaluate(() => (location.hash = '#mine'));
      await mine('western').getByText('Failed').waitFor();
      await west.api.stop();
      await page.locator('.clusters-missing').getByText(/^west is as of/).waitFor();
      world.fails('eastern', { ran: minutes });
      await mine('eastern').getByText('Failed').waitFor();
      expect(await mine('western').count()).toBe(1);
      await expect.poll(async () => [await page.locator('.connection-label').textContent(), await page.locator('[data-dated]').count()]).toEqual(['Live', 0]);
    });
  });

  describe('of 20,000 pods', () => {
    const pods = 20_000;
    const rate = 300;
    const seconds = 5;
    const namespace = 'team-speech';
    const nameOf = (n: number): string => `exp-${String(n).padStart(5, '0')}`;
    /** One in 25 waits for a node, one for its image, and one crashes again and again; the others run or are over. */
    const first = [
      () => unschedulable(), () => waitsFor('ImagePullBackOff', 'Back-off pulling image'), () => crashes(12),
      ...Array.from({ length: 15 }, () => () => running(hours)), ...Array.from({ length: 7 }, () => () => over(0, 'Completed', minutes, hours)),
    ];
    const row = '.table-body .table-row[data-name]';

    beforeAll(() => {
      for (let n = 0; n < pods; n++) world.pod(nameOf(n), first[n % first.length]?.() ?? {}, { namespace, node: `node-${n % 10}`, gpus: 0, ago: n * 1_000 });
    });

    test('those that crash are counted and found as such, and are not among those that run', async () => {
      await open(`#pods?ns=${namespace}`);
      await page.locator('.large-total').getByText('20,000 found').waitFor();
      await page.getByRole('button', { name: 'Running 12,000' }).click();
      await page.locator('.large-total').getByText('12,000 found').waitFor();
      const shown = async (): Promise<string[]> => [...new Set(await page.locator(`${row} .state-name`).allTextContents())];
      await expect.poll(shown).toEqual(['Running']);
      for (const state of ['CrashLoopBackOff', 'ImagePullBackOff']) {
        await page.getByRole('button', { name: `${state} 800` }).click();
        await page.locator('.large-total').getByText('800 found').waitFor();
        await expect.poll(shown).toEqual([state]);
      }
      await page.getByRole('button', { name: 'CrashLoopBackOff 800' }).click();
      await expect.poll(shown).toEqual(['CrashLoopBackOff']);
      const why = page.locator(`${row} .state-detail`).first();
      expect(await why.evaluate((one) => one.scrollWidth - one.clientWidth)).toBeLessThanOrEqual(0); // all of it
      await page.evaluate(() => (location.hash = '#overview'));
      await page.getByRole('region', { name: 'Pods in trouble' }).locator('li', { hasText: 'CrashLoopBackOff' }).locator('.wrong-count', { hasText: '800' }).waitFor();
    });

    test('of which 300 change in a second: no task is longer than what takes an empty page 100 ms, and rows are right in the end', async () => {
      await open(`#pods?ns=${namespace}&sort=name`);
      await page.locator(row).nth(10).waitFor();
      const { page: empty } = await openPage(browser);
      await empty.goto('about:blank');
      await browser.startTracing(undefined, { categories: ['toplevel', 'blink.user_timing'] });
      await Promise.all([page, empty].map((one, n) => one.evaluate((mark) => performance.mark(mark), n ? 'empty' : 'portal')));
      const long = page.evaluate((ms) => new Promise<number[]>((resolve) => {
        const all: number[] = [];
        new PerformanceObserver((list) => all.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: 'longtask' });
        setTimeout(() => resolve(all), ms);
      }), seconds * 1_000);
      const works = empty.evaluate(work, seconds);
      const began = performance.now();
      let changed = 0;
      while (performance.now() - began < seconds * 1_000) {
        for (const due = ((performance.now() - began) / 1_000) * rate; changed < due; changed++) {
          // Half of what changes is in sight.
          const name = nameOf(changed % 2 ? (changed >> 1) % 40 : (changed * 7_919) % pods);
          world.now('pods', namespace, name, changed % 3 ? crashes(20 + changed) : running(changed * 100));
        }
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      const [longTasks, walls] = [await long, await works];
      const { traceEvents } = JSON.parse((await browser.stopTracing()).toString()) as { traceEvents: TraceEvent[] };
      const [portal, reference] = [tasksOf(traceEvents, 'portal'), tasksOf(traceEvents, 'empty').slice(0, walls.length)];
      const aHundred = reference[reference.length >> 1] ?? NaN;
      console.error(
        `${pods} pods, ${Math.round(changed / seconds)} changes/s: ${portal.length} tasks, on the processor the longest ${portal.slice(0, 5).join(', ')} ms, of the empty page's ${aHundred} ms; ` +
          `by the clock ${longTasks.length} long tasks, the longest ${Math.max(0, ...longTasks).toFixed(0)} ms, of the empty page's ${Math.max(...walls).toFixed(0)} ms`,
      );
      expect(portal.length).toBeGreaterThan(seconds);
      expect((portal[0] ?? NaN) / aHundred).toBeLessThan(1);

      // As the API server has them.
      const had = new Map(world.api.all('pods').map(({ metadata, status }) => [`${metadata.namespace}/${metadata.name}`, podOf(status as PodStatus)]));
      await expect.poll(async () => {
        const rows = await page.locator(row).evaluateAll((all) => all.map((one) => [one.getAttribute('data-name') ?? '', one.querySelector('.state-name')?.textContent, Number(one.querySelector('.column-restarts')?.textContent)] as const));
        if (rows.length < 10) return 'no rows';
        return rows.filter(([name, state, restarts]) => {
          const is = had.get(`${namespace}/${name}`);
          return restarts !== is?.restarts || (is.state !== undefined && state !== is.state);
        });
      }).toEqual([]);
      for (const state of ['Running', 'CrashLoopBackOff']) {
        const count = [...had].filter(([name, is]) => name.startsWith(`${namespace}/`) && is.state === state).length;
        await page.getByRole('button', { name: `${state} ${count.toLocaleString('en')}`, exact: true }).waitFor();
      }
      await closeContext(empty.context());
    });

    test('over 10 Mbit/s and 100 ms how soon the first rows are there is told beside a plain page with as many of them', async () => {
      const opened = async (address: string, shown: string, bearer: boolean): Promise<number> => {
        const { page: one } = await openPage(browser, bearer ? { extraHTTPHeaders: { Authorization: `Bearer ${token}` } } : {});
        await one.context().addInitScript((kept) => sessionStorage.setItem('kubecast.token', kept), token);
        const cdp = await one.context().newCDPSession(one);
        await cdp.send('Network.enable');
        await cdp.send('Network.emulateNetworkConditions', { offline: false, latency: 100, downloadThroughput: 1.25e6, uploadThroughput: 1.25e6 });
        await one.goto(`${world.gateway.url}/${address}`, { waitUntil: 'commit' });
        // Chromium's own slowing down holds up a page for a minute now and then: that is no answer.
        const at = await one.waitForFunction((selector) => document.querySelector(selector) && document.readyState === 'complete' && performance.now(), shown, { polling: 'raf', timeout: 20_000 }).catch(() => undefined);
        const took = at ? Number(await at.jsonValue()) : Infinity;
        await closeContext(one.context());
        return took;
      };
      const [rows, plain]: [number[], number[]] = [[], []];
      for (let n = 0; n < 3; n++) {
        plain.push(await opened(`api/v1/namespaces/${namespace}/pods?limit=50`, 'pre', true));
        rows.push(await opened(`#pods?ns=${namespace}&sort=name`, row, false));
      }
      const [best, bestPlain] = [Math.min(...rows), Math.min(...plain)];
      // Not asserted: a plain page waits for the line, and this one for the processor, so the ratio grows with the machine's load.
      console.error(`first rows of ${pods} pods over 10 Mbit/s and 100 ms: ${rows.map(Math.round).join(', ')} ms; a plain page: ${plain.map(Math.round).join(', ')} ms; ratio ${(best / bestPlain).toFixed(1)}`);
    });
  });
});

interface PodStatus {
  readonly containerStatuses?: readonly [{ readonly restartCount: number; readonly state: { readonly waiting?: { readonly reason: string }; readonly running?: object } }];
}

/** What a table tells of a pod; undefined: a state that is not told from its one container. */
function podOf({ containerStatuses: [one] = [{ restartCount: 0, state: {} }] }: PodStatus): { state: string | undefined; restarts: number } {
  return { state: one.state.waiting?.reason ?? (one.state.running ? 'Running' : undefined), restarts: one.restartCount };
}

interface TraceEvent {
  readonly name: string;
  readonly pid: number;
  readonly tid: number;
  readonly tdur?: number;
}

/** The times on the processor, in milliseconds, of the tasks of the page that set a mark, the longest first. */
function tasksOf(events: readonly TraceEvent[], mark: string): number[] {
  const of = events.find(({ name }) => name === mark);
  return events.flatMap(({ pid, tid, name, tdur }) => (pid === of?.pid && tid === of.tid && name.endsWith('RunTask') && tdur ? [tdur / 1_000] : [])).map(Math.round).sort((a, b) => b - a);
}

/** Does once in half a second what takes 100 ms on a machine that has nothing else to do, and tells how long each took. */
async function work(seconds: number): Promise<number[]> {
  const took: number[] = [];
  for (let n = 0; n < 2 * seconds; n++) {
    await new Promise((resolve) => setTimeout(resolve, 400));
    const began = performance.now();
    let state = 1;
    const numbers = Array.from({ length: 250_000 }, () => (state = (state * 48_271) % 2_147_483_647));
    numbers.sort((a, b) => a - b);
    took.push(performance.now() - began);
  }
  return took;
}

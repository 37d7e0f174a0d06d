// What somebody wants to know whose job has died at night: why, on which node, what it used and wrote, also when it is gone; on a real gateway and control plane.

import { parse as parseCsv } from 'csv-parse/sync';
import { readFile } from 'node:fs/promises';
import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { englishOf, violations } from './support/face.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { missing } from './support/skip.ts';

const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries });
const namespace = 'team-vision';
const user = 'mara.lindqvist';
const requests = { cpu: '2', memory: '1Gi' };
const why = 'main was OOM-killed (exit 137) on node-';

const jobsets = {
  apiVersion: 'apiextensions.k8s.io/v1',
  kind: 'CustomResourceDefinition',
  metadata: { name: 'jobsets.jobset.x-k8s.io', annotations: { 'api-approved.kubernetes.io': 'unapproved, a test' } },
  spec: {
    group: 'jobset.x-k8s.io',
    scope: 'Namespaced',
    names: { plural: 'jobsets', singular: 'jobset', kind: 'JobSet', listKind: 'JobSetList' },
    versions: [{ name: 'v1alpha2', served: true, storage: true, schema: { openAPIV3Schema: { type: 'object', 'x-kubernetes-preserve-unknown-fields': true } } }],
  },
};
const set = { apiVersion: 'jobset.x-k8s.io/v1alpha2', kind: 'JobSet', metadata: { name: 'set', namespace, labels: { 'kubecast.io/owner': user } }, spec: {} };

describe.skipIf(lacking !== undefined)(`why a job ended${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let token: string;
  let page: Page;
  let complaints: string[];

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start()]);
    token = await kubecast.token(user, ['platform']);
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify(jobsets));
    await kubecast.kubectl(['wait', '--for=condition=Established', 'crd/jobsets.jobset.x-k8s.io', '--timeout=60s']);
    await kubecast.kubectl(['create', 'clusterrole', 'jobset-viewer', '--verb=get,list,watch', '--resource=jobsets.jobset.x-k8s.io']);
    await kubecast.kubectl(['create', 'clusterrolebinding', 'jobset-viewers', '--clusterrole=jobset-viewer', '--group=platform']);
    await kubecast.configure({ history: { stateDir: kubecast.stateDir, kinds: [{ resource: 'jobsets.jobset.x-k8s.io' }] } });
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify(set));
    const { metadata } = (await kubecast.api('GET', `/apis/jobset.x-k8s.io/v1alpha2/namespaces/${namespace}/jobsets/set`)) as { metadata: { uid: string } };
    await kubecast.submit(namespace, 'set-workers-0', { start: 0, run: 600, requests, of: { apiVersion: set.apiVersion, kind: set.kind, name: 'set', uid: metadata.uid } });
    await kubecast.submit(namespace, 'well', { start: 0, run: 0 });
    await kubecast.submit(namespace, 'hungry', { start: 0, run: 600, pods: 2, requests, outOfMemory: true });
    // Both end at once: a job that has failed takes what still runs with it, and what has not begun.
    const phases = (): Promise<string> => kubecast.kubectl(['get', 'pods', '-n', namespace, '-l', 'job-name=hungry', '-o', 'jsonpath={.items[*].status.phase}']);
    await vi.waitFor(async () => expect(await phases()).toBe('Running Running'), { timeout: 60_000, interval: 200 });
    await kubecast.now('end', namespace, 'hungry');
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), kubecast?.stop()]);
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
    await page.goto(`${kubecast.url}/#token=${token}`);
    await page.locator('button[type=submit]').click();
    await page.locator('.connection-live').waitFor();
    await page.evaluate((to) => (location.hash = to), hash);
  };
  const fact = (name: string) => page.locator('.job-facts .fact', { has: page.locator('dt', { hasText: new RegExp(`^${name}$`) }) }).locator('dd');
  const podRows = () => page.locator('.job-table tbody tr').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '')));

  test('a job that ran out of memory says so on its page, in the inbox and in the history, where it is found by that', async () => {
    await open(`#jobs/${namespace}/hungry`);
    const said = page.locator('.job-why');
    await said.getByText(why).waitFor();
    expect(await said.getByRole('heading').textContent()).toBe('Why it failed');
    expect(await page.locator('.timeline li[data-state=Failed] .timeline-why').textContent()).toContain(why);
    // What its controller makes of it can be read without pointing at it.
    await page.locator('.timeline li[data-state=Failed] .timeline-said').getByText('BackoffLimitExceeded').waitFor();
    await expect.poll(() => fact('Pods failed').textContent()).toBe('2 of 2');
    expect(await fact('Attempts').textContent()).toBe('1');
    expect(await fact('Used').textContent()).toMatch(/^0\.\d+ CPU hours0\.\d+ GiB hours$/);
    await page.getByRole('tab', { name: /^Pods/ }).click();
    await expect.poll(async () => (await podRows()).map(([, , index, node = '', , , , , end]) => [index, /^node-\d+$/.test(node), end])).toEqual([
      ['0', true, 'main: OOMKilled exit code 137'],
      ['1', true, 'main: OOMKilled exit code 137'],
    ]);
    for (const [, , , , started = '', ended = '', ran = ''] of await podRows()) expect([started, ended, ran].join(' ')).toMatch(/^\d\d:\d\d:\d\d \d\d:\d\d:\d\d (\d+m ?)?\d+s$/);
    expect(await violations(page)).toEqual([]);

    await page.locator('.bell-button').click();
    await page.locator('.inbox-items').getByText(/hungry.* OOM-killed/).waitFor();
    await page.keyboard.press('Escape');

    await page.evaluate(() => (location.hash = '#history'));
    const row = (name: string) => page.locator('.plain-table tbody tr', { hasText: name });
    await row('well').waitFor();
    await page.getByLabel('Why it ended').selectOption({ label: 'OOM-killed' });
    await row('well').waitFor({ state: 'detached' });
    expect(await row('hungry').textContent()).toContain(why);
    expect(page.url()).toContain('cause=OOMKilled');
    expect(await violations(page)).toEqual([]);
    const downloaded = page.waitForEvent('download');
    await page.locator('summary', { hasText: 'Export' }).click();
    await page.getByRole('button', { name: 'CSV' }).click();
    const [header = [], ...lines] = parseCsv(await readFile(await (await downloaded).path(), 'utf8'), { bom: true });
    expect(lines.map((line) => ['Name', 'Attempt', 'Pods failed'].map((one) => line[header.indexOf(one)]))).toEqual([['hungry', '1', '2']]);
    expect(lines[0]?.[header.indexOf('Cause')]).toContain(why);
    expect(Number(lines[0]?.[header.indexOf('CPU hours')])).toBeGreaterThan(0);
  });

  test('what is wrong now stands on the overview without a click, and each line leads to what it counts', async () => {
    const { items } = (await kubecast.api('GET', '/api/v1/nodes')) as { items: { metadata: { name: string } }[] };
    const node = items[0]?.metadata.name ?? '';
    await kubecast.kubectl(['cordon', node]);
    await open('#overview');
    const part = (name: string) => page.getByRole('region', { name, exact: true });
    const line = (name: string, of: string) => part(name).locator('li', { hasText: of });
    await expect.poll(() => line('Nodes', 'Ready,SchedulingDisabled').locator('.wrong-count').textContent()).toBe('1');
    await expect.poll(() => line('Why jobs failed', 'OOM-killed').locator('.wrong-count').textContent()).toBe('1');
    await expect.poll(() => page.locator('.chart-says').first().textContent()).toMatch(/succeeded, 1 failed\.$/);
    expect(await violations(page)).toEqual([]);

    await line('Pods in trouble', 'OOMKilled').getByRole('link').click();
    await expect.poll(() => page.locator('.table-body .table-row[data-name] .state-name').allTextContents()).toEqual(['OOMKilled', 'OOMKilled']);
    await page.goBack();
    await line('Why jobs failed', 'OOM-killed').getByRole('link').click();
    await page.locator('.plain-table tbody tr', { hasText: 'hungry' }).waitFor();
    expect(await page.locator('.plain-table tbody tr').count()).toBe(1);
    await page.goBack();
    await line('Nodes', 'Ready,SchedulingDisabled').getByRole('link').click();
    await page.locator('.toolbar-end', { hasText: '1 object' }).waitFor();
    await page.locator('.plain-table tbody tr', { hasText: node }).waitFor();
    await kubecast.kubectl(['uncordon', node]);
    await page.getByText('None is in this state.').waitFor();
    expect(await violations(page)).toEqual([]);
  });

  test('what is part of a whole leads to it, and the whole to its parts, in Chinese and in the dark', async () => {
    await closeContext(page.context());
    ({ page, complaints } = await openPage(browser, { locale: 'zh-CN', colorScheme: 'dark', reducedMotion: 'reduce', viewport: { width: 1280, height: 900 } }));
    await open(`#kinds/jobsets.jobset.x-k8s.io/${namespace}/set`);
    const part = page.locator('.job-parts li[data-name=set-workers-0]');
    await part.getByText('运行中').waitFor();
    await fact('用量').getByText(/CPU 小时/).waitFor();
    expect([await violations(page), await englishOf(page)]).toEqual([[], []]);
    await part.getByRole('link').click();
    await page.getByRole('heading', { name: 'set-workers-0' }).waitFor();
    await fact('所属作业').getByRole('link', { name: 'set', exact: true }).waitFor();
    expect(await fact('用量').textContent()).toContain('计入其所属的作业');
    await page.locator('.tabs button').nth(1).click();
    await page.locator('.job-table tbody tr').waitFor();
    expect([await violations(page), await englishOf(page)]).toEqual([[], []]);
    await fact('所属作业').getByRole('link').click();
    await part.waitFor();
  });

  test('when it was deleted, its pods, the end of its log and what it was told to do are still there', async () => {
    const kept = async (): Promise<unknown> => {
      const answer = await fetch(`${kubecast.url}/history/apis/batch/v1/namespaces/${namespace}/jobs/hungry`, { headers: { Authorization: `Bearer ${token}` } });
      return ((await answer.json()) as { items: { log: boolean }[] }).items[0]?.log;
    };
    await expect.poll(kept).toBe(true);
    await open(`#jobs/${namespace}/hungry`);
    await page.locator('.job-why').getByText(why).waitFor();
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'hungry', '--wait=true']);
    await page.getByText('This job is gone. Its history is kept.').waitFor();
    await page.locator('.job-kept').getByText('The end of its log').waitFor();
    await page.locator('.log-text', { hasText: /starts on hungry-\d-/ }).first().waitFor();
    await page.reload();
    await page.locator('.job-why').getByText(why).waitFor();
    expect(await fact('Pods failed').textContent()).toBe('2 of 2');
    await page.getByRole('tab', { name: /^Pods/ }).click();
    await expect.poll(async () => (await podRows()).map(([name = '', state]) => [/^hungry-\d-/.test(name), state])).toEqual([[true, 'OOMKilled'], [true, 'OOMKilled']]);
    expect(await page.locator('.job-table .cell-name a').count()).toBe(0);
    await page.getByRole('tab', { name: 'YAML' }).click();
    await page.locator('pre', { hasText: 'parallelism: 2' }).waitFor();
    expect(await violations(page)).toEqual([]);
  });

  test('a link opens the run that it meant, also when it is gone and another one has its name', async () => {
    const runs = async (): Promise<Record<string, string>> => {
      const answer = await fetch(`${kubecast.url}/history/apis/batch/v1/namespaces/${namespace}/jobs/nightly`, { headers: { Authorization: `Bearer ${token}` } });
      const { items } = (await answer.json()) as { items: { uid: string; state: string; durations: Record<string, number> }[] };
      return Object.fromEntries(items.map(({ uid, state, durations }) => ['Failed' in durations ? 'Failed' : state, uid]));
    };
    await kubecast.submit(namespace, 'nightly', { start: 0, run: 1, pods: 1, requests, outOfMemory: true });
    await expect.poll(async () => Object.keys(await runs())).toEqual(['Failed']);
    await kubecast.kubectl(['delete', 'job', '--namespace', namespace, 'nightly', '--wait=true', '--cascade=foreground']);
    await kubecast.submit(namespace, 'nightly', { start: 0, run: 1 });
    await expect.poll(async () => Object.keys(await runs()).sort()).toEqual(['Failed', 'Succeeded']);
    const uids = await runs();

    await open('#history');
    await page.locator('tr', { hasText: 'nightly' }).filter({ hasText: 'Failed' }).getByRole('link').click();
    const said = page.locator('.job-why');
    await said.getByText(why).waitFor();
    expect(page.url()).toContain(`#jobs/${namespace}/nightly@${uids.Failed}`);
    await page.getByText('another one has its name now').waitFor();
    await page.getByRole('tab', { name: /^Pods/ }).click();
    await expect.poll(async () => (await podRows()).map(([, state]) => state)).toEqual(['OOMKilled']);
    await page.getByRole('tab', { name: 'YAML' }).click();
    await page.locator('pre', { hasText: String(uids.Failed) }).waitFor();
    await page.reload(); // a page for ever
    await said.getByText(why).waitFor();
    expect(await violations(page)).toEqual([]);

    const others = page.getByRole('region', { name: 'Other runs of this name' });
    await expect.poll(() => others.locator('li').count()).toBe(1);
    await others.getByRole('link', { name: /^Succeeded/ }).click();
    await page.locator('.job-head').getByText('Succeeded').waitFor();
    expect(page.url()).toContain(`nightly@${uids.Succeeded}`);
    await others.locator(`li[data-uid="${uids.Failed}"]`).getByText(why).waitFor();
    expect(await said.count()).toBe(0);

    // Who asks for the name only comes to the one that has it.
    await page.evaluate((to) => (location.hash = to), `#jobs/${namespace}/nightly`);
    await page.locator('.job-head').getByText('Succeeded').waitFor();
    await page.locator('.bell-button').click();
    expect(await page.locator('.inbox-items a', { hasText: /nightly.* OOM-killed/ }).getAttribute('href')).toContain(`nightly@${uids.Failed}`);
    await page.keyboard.press('Escape');

    // By a part of its name: in the history, and from any page.
    await page.evaluate(() => (location.hash = '#history'));
    const rows = page.locator('.plain-table tbody tr');
    await rows.filter({ hasText: 'well' }).waitFor();
    await page.getByRole('searchbox', { name: 'Search by name' }).fill('IGHT');
    await rows.filter({ hasText: 'well' }).waitFor({ state: 'detached' });
    await expect.poll(() => rows.count()).toBe(2); // what is there before the answer is no row of it
    expect(page.url()).toContain('q=IGHT');
    expect(await violations(page)).toEqual([]);
    await page.evaluate(() => (location.hash = '#overview'));
    await page.keyboard.press('Control+k');
    await page.getByRole('combobox', { name: 'Go to' }).fill('night');
    const gone = page.getByRole('group', { name: 'Jobs that are gone' }).getByRole('option');
    await gone.waitFor();
    await page.getByRole('group', { name: 'Job', exact: true }).getByRole('option', { name: /nightly/ }).waitFor();
    expect(await gone.textContent()).toMatch(new RegExp(`^nightly ${namespace} · Failed · `));
    expect(await violations(page)).toEqual([]);
    if (process.env.SHOTS) await page.screenshot({ path: `${process.env.SHOTS}/palette.png` });
    await gone.click();
    await said.getByText(why).waitFor();
    expect(page.url()).toContain(`nightly@${uids.Failed}`);
  });
});

// Queues under Kueue's own controllers, on a real gateway and control plane: who stands where, for whom strangers are numbers, and that a change is seen soon.

import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { chromiumPath, closeContext, hasChromium, launch, openPage } from './support/chromium.ts';
import { englishOf, violations } from './support/face.ts';
import { devclusterPath, gatewayPath, hasBinaries, Kubecast } from './support/kubecast.ts';
import { Program } from './support/processes.ts';
import { missing } from './support/skip.ts';

const controllersPath = process.env.KUBECAST_DEVCONTROLLERS_BIN ?? fileURLToPath(new URL('../../bin/devcontrollers', import.meta.url));
const lacking = missing({ [chromiumPath]: hasChromium, [`${gatewayPath} and ${devclusterPath}`]: hasBinaries, [controllersPath]: existsSync(controllersPath) });
const pictures = process.env.KUBECAST_PICTURES ?? '';

const of = (kind: string, name: string, spec: object, namespace?: string) => ({ apiVersion: 'kueue.x-k8s.io/v1beta2', kind, metadata: { name, namespace }, spec });
const whole = (name: string, nominalQuota: number) =>
  of('ClusterQueue', name, { cohortName: 'lab', namespaceSelector: {}, resourceGroups: [{ coveredResources: ['cpu'], flavors: [{ name: 'large', resources: [{ name: 'cpu', nominalQuota }] }] }] });
// Which of two Workloads of one second waits before the other is Kueue's to choose, so priorities say it.
const priorities = [30, 20, 10].map((value) => ({ apiVersion: 'kueue.x-k8s.io/v1beta2', kind: 'WorkloadPriorityClass', metadata: { name: `p${value}` }, value, description: 'an order' }));
const queues = [
  ...priorities, of('ResourceFlavor', 'large', {}), whole('all', 4), whole('spare', 2),
  of('LocalQueue', 'vision', { clusterQueue: 'all' }, 'team-vision'), of('LocalQueue', 'nlp', { clusterQueue: 'all' }, 'team-nlp'),
];

describe.skipIf(lacking !== undefined)(`queues${lacking ? ` (${lacking})` : ''}`, () => {
  let browser: Browser;
  let kubecast: Kubecast;
  let controllers: Program | undefined;
  let page: Page;
  let complaints: string[] = [];

  beforeAll(async () => {
    [browser, kubecast] = await Promise.all([launch(), Kubecast.start()]);
    if (pictures) await mkdir(pictures, { recursive: true });
  });

  afterAll(async () => {
    await Promise.allSettled([browser?.close(), controllers?.stop()]);
    await kubecast?.stop();
  });

  afterEach(async () => {
    const said = [...complaints];
    await closeContext(page.context());
    expect(said).toEqual([]);
  });

  const open = async (user: string, group: string, hash: string, how: { locale?: string; colorScheme?: 'dark' | 'light'; width?: number } = {}): Promise<void> => {
    const { locale = 'en-GB', colorScheme = 'light', width = 1280 } = how;
    ({ page, complaints } = await openPage(browser, { locale, colorScheme, reducedMotion: 'reduce', viewport: { width, height: 800 } }));
    await page.goto(`${kubecast.url}/#token=${await kubecast.token(user, [group])}`);
    await page.locator('button[type=submit]').click();
    await page.locator('.connection-live').waitFor();
    await page.evaluate((to) => (location.hash = to), hash);
  };
  const picture = async (name: string): Promise<void> => {
    if (pictures) await page.screenshot({ path: join(pictures, `${name}.png`) });
  };
  const linkToQueues = () => page.locator('header nav a[href^="#queues"]');
  const lines = () => page.locator('.job-main tbody tr').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('td')].map((cell) => cell.innerText.trim()).slice(0, 3).join(' ')));

  /** As Kueue's webhook would leave it: suspended. No node takes its pod, so that what is let in stays. */
  const submit = async (namespace: string, queue: string, name: string, cpus: number, priority: number): Promise<void> => {
    const labels = { 'kueue.x-k8s.io/queue-name': queue, 'kueue.x-k8s.io/priority-class': `p${priority}`, 'kubecast.io/owner': 'mara' };
    const container = { name: 'main', image: 'example.org/train:1', resources: { requests: { cpu: String(cpus) } } };
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify({
      apiVersion: 'batch/v1', kind: 'Job', metadata: { name, namespace, labels }, spec: { suspend: true, parallelism: 1, completions: 1, template: { metadata: { labels }, spec: { restartPolicy: 'Never', nodeSelector: { no: 'such' }, containers: [container] } } },
    }));
    await kubecast.shell(`until kubectl get workloads.kueue.x-k8s.io -n ${namespace} -o name | grep -q job-${name}-; do sleep 0.1; done`);
  };

  test('a cluster without queues has no page of them', async () => {
    await open('mara', 'team-vision', '#jobs');
    await page.locator('header nav a[href^="#jobs"]').waitFor();
    await expect.poll(() => page.evaluate(() => performance.getEntriesByType('resource').some(({ name }) => name.endsWith('/queues')))).toBe(true);
    expect(await linkToQueues().count()).toBe(0);
  });

  test('two users see one order: of what is not theirs only that it is there, and a change of place soon', async () => {
    controllers = new Program('devcontrollers', controllersPath, ['--kubeconfig', join(kubecast.stateDir, 'cluster', 'kubeconfig')]);
    await controllers.says(/^ready$/m, 120_000);
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: queues }));
    await kubecast.kubectl(['create', 'clusterrole', 'queues', '--verb=get,list,watch', '--resource=clusterqueues.kueue.x-k8s.io,localqueues.kueue.x-k8s.io']);
    await kubecast.kubectl(['create', 'clusterrolebinding', 'queues', '--clusterrole=queues', '--group=platform', '--group=team-vision']);
    await kubecast.kubectl(['create', 'clusterrolebinding', 'queues-mara', '--clusterrole=queues', '--user=mara']);
    await submit('team-vision', 'vision', 'holds', 5, 30); // one of them is borrowed
    await kubecast.shell('until kubectl get job holds -n team-vision -o jsonpath={.spec.suspend} | grep -q false; do sleep 0.1; done');
    await submit('team-nlp', 'nlp', 'secret', 4, 30);
    await submit('team-vision', 'vision', 'next', 4, 20);
    await submit('team-vision', 'vision', 'last', 4, 10);

    await open('mara', 'team-vision', '#jobs');
    await linkToQueues().click();
    const row = page.locator('.plain-table tbody tr', { hasText: 'team-vision' });
    await row.waitFor();
    await expect.poll(() => page.locator('.plain-table tbody tr', { hasText: 'whole cluster' }).first().textContent()).toMatch(/5 of 4, 1 borrowed/);
    await picture('queues-light');
    expect(await violations(page)).toEqual([]);
    await page.evaluate(() => (location.hash = '#queues/all'));
    await expect.poll(lines).toEqual(["1 someone else's job", '2 next team-vision mara', '3 last team-vision mara']);
    expect(await page.locator('body').textContent()).not.toContain('secret');
    await picture('queue-whole-light');
    await page.getByRole('tab', { name: 'Who has what' }).click();
    await page.locator('tr[data-team=team-vision]').getByText('5').waitFor();
    await picture('queue-teams-light');
    expect(await violations(page)).toEqual([]);

    await page.evaluate(() => (location.hash = '#jobs/team-vision/last'));
    const place = page.locator('.job-place dd').first();
    await expect.poll(() => place.textContent()).toBe('2 in the queue · 3 in the cluster');
    await picture('queue-job-light');
    expect(await violations(page)).toEqual([]);
    await page.evaluate(() => (location.hash = '#jobs?state=Queued'));
    await page.locator('.place-hint').first().waitFor();
    await picture('queue-jobs-light');
    await page.evaluate(() => (location.hash = '#mine'));
    await page.locator('.mine .place-hint').first().waitFor();
    await picture('queue-mine-light');

    await page.evaluate(() => (location.hash = '#queues/team-vision/vision'));
    await expect.poll(lines).toEqual(['1 2 next', '2 3 last']);
    // The cluster's garbage collector hears of new kinds twice a minute, so the Workload is not left to it.
    await kubecast.kubectl(['delete', 'job', '-n', 'team-vision', 'next', '--wait=false']);
    await kubecast.shell('kubectl delete --wait=false -n team-vision $(kubectl get workloads.kueue.x-k8s.io -n team-vision -o name | grep job-next-)');
    const deleted = Date.now();
    await expect.poll(lines, { interval: 20 }).toEqual(['1 2 last']);
    // A second is promised after Kueue knows of it.
    expect(Date.now() - deleted).toBeLessThan(8_000);
    expect(await page.locator('body').textContent()).not.toContain('secret');
  });

  test('a queue with a past says when its jobs will start: on its page, on the page of a job, and in the table', async () => {
    // The past is real: sixty jobs, that waited and ran for a few seconds.
    const past = of('ClusterQueue', 'past', { namespaceSelector: {}, resourceGroups: [{ coveredResources: ['cpu'], flavors: [{ name: 'large', resources: [{ name: 'cpu', nominalQuota: 16 }] }] }] });
    await kubecast.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [past, of('LocalQueue', 'past', { clusterQueue: 'past' }, 'team-vision')] }));
    const labels = { 'kueue.x-k8s.io/queue-name': 'past', 'kubecast.io/owner': 'mara' };
    const train = (number: number, seconds: number) => ({
      apiVersion: 'batch/v1', kind: 'Job', metadata: { name: `train-${number}`, namespace: 'team-vision', labels },
      spec: {
        suspend: true, template: {
          metadata: { labels, annotations: { 'devcluster.kubecast.io/run-seconds': String(seconds) } },
          spec: { restartPolicy: 'Never', containers: [{ name: 'main', image: 'example.org/train:1', resources: { requests: { cpu: '1' } } }] },
        },
      },
    });
    const submitAll = (first: number, last: number, seconds: (number: number) => number): Promise<string> =>
      kubecast.kubectl(['create', '-f', '-'], JSON.stringify({ apiVersion: 'v1', kind: 'List', items: Array.from({ length: last - first }, (_, i) => train(first + i, seconds(first + i))) }));
    const token = await kubecast.token('mara', ['team-vision']);
    const recorded = async (): Promise<number> => {
      const answer = await fetch(`${kubecast.url}/history/apis/batch/v1/namespaces/team-vision/jobs?state=Succeeded&queue=past&limit=500`, { headers: { Authorization: `Bearer ${token}` } });
      return ((await answer.json()) as { items: unknown[] }).items.length;
    };
    const few = (number: number): number => 2 + (number % 3);
    await submitAll(0, 10, few);
    await expect.poll(recorded, { timeout: 120_000 }).toBeGreaterThan(4);
    await submitAll(10, 60, few);
    await expect.poll(recorded, { timeout: 120_000 }).toBe(60);
    await submitAll(60, 76, () => 86_400); // these hold the queue, so that the next two stay where they are
    await kubecast.shell('until [ $(kubectl get jobs -n team-vision -o jsonpath="{range .items[?(@.status.active==1)]}{.metadata.name} {end}" | wc -w) -ge 16 ]; do sleep 0.2; done');
    await submitAll(76, 78, few);

    await open('mara', 'team-vision', '#queues/team-vision/past');
    const inWords = /^(within|in) .*\d (sec|min|hr).*80% sure/s;
    const told = page.locator('tr[data-name=train-77] .starts');
    // A start that did not come within a short interval is told as late until it is found out anew.
    const saysWhen = (starts: Locator) => expect.poll(() => starts.textContent(), { timeout: 120_000 }).toMatch(inWords);
    await saysWhen(told);
    await picture('queue-starts-light');
    expect(await violations(page)).toEqual([]);
    await page.evaluate(() => (location.hash = '#jobs/team-vision/train-77'));
    const onPage = page.locator('.job-place .starts');
    await onPage.waitFor();
    await saysWhen(onPage);
    await picture('queue-job-starts-light');
    expect(await violations(page)).toEqual([]);
    await page.evaluate(() => (location.hash = '#jobs?state=Queued'));
    const inTable = page.locator('.place-hint .starts').first();
    await inTable.waitFor();
    await expect.poll(async () => `${await inTable.textContent()} ${await inTable.getAttribute('title')}`, { timeout: 120_000 }).toMatch(/^(within|in) .*\d (sec|min|hr).*80%/s);
    await picture('queue-jobs-starts-light');
  });

  test('whoever may see all sees names, in Chinese, in the dark, and on a narrow screen', async () => {
    await open('chief', 'platform', '#queues/all', { locale: 'zh-CN', colorScheme: 'dark', width: 320 });
    await expect.poll(lines).toEqual(['1 secret team-nlp mara', '2 last team-vision mara']);
    for (const [name, hash] of [['queue', '#queues/all'], ['queues', '#queues'], ['job', '#jobs/team-vision/last']] as const) {
      await page.evaluate((to) => (location.hash = to), hash);
      await page.locator(name === 'job' ? '.job-place' : name === 'queues' ? '.queue-uses' : '.quota').first().waitFor();
      expect([await violations(page), await englishOf(page)]).toEqual([[], []]);
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(320);
      await picture(`${name}-dark-320`);
    }
  });
});

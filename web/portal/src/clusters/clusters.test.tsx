import type { Kubecast } from '@kubecast/sdk';
import { defineResource, logs, transitions } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { inChinese } from '../../../mock/chinese.ts';
import { frame, type ScriptedFetch, type ScriptedRequest } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { MockPast } from '../../../mock/past.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { HistoryPage } from '../history/HistoryPage.tsx';
import { isNext, joined, type Leafed } from '../history/JobList.ts';
import { HomePage } from '../home/HomePage.tsx';
import { Palette } from '../palette/Palette.tsx';
import { parseView, useView } from '../view/view.ts';
import { ClusterChoice } from './ClusterChoice.tsx';
import { clusterOf, inCluster } from './inCluster.ts';
import { ServedClusters, viewIn, type Served } from './served.ts';
import { inTurn } from './together.ts';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered | undefined;

eachPage((made) => ({ server, kc } = made));
afterEach(() => {
  page?.unmount();
  page = undefined;
});

const served: readonly Served[] = [
  { name: 'east', default: true, state: 'live' },
  { name: 'west', default: false, state: 'live' },
];
/** In steps: what is to be rendered waits for the end of an `act`. */
const pass = async (ms = 0): Promise<void> => {
  for (let left = ms; left >= 0; left -= 100) await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 100)));
};
const show = async (Shown: () => ReturnType<typeof HomePage>): Promise<HTMLElement> => {
  page = render(
    <KubecastProvider client={kc}>
      <ServedClusters value={served}>
        <Shown />
      </ServedClusters>
    </KubecastProvider>,
  );
  await pass(10);
  return page.element;
};
/** What was asked of a cluster and is no stream's. */
const asked = (cluster: 'east' | 'west', part: string): ScriptedRequest[] =>
  server.requests.filter(({ url, aborted }) => url.includes(part) && !url.startsWith('/stream') && !aborted && url.includes('/clusters/west/') === (cluster === 'west'));

test('what is asked of another cluster is asked there, all on one stream, and what is of no cluster as ever', async () => {
  const west = inCluster(kc, 'w/1');
  expect([inCluster(west, ''), inCluster(kc, 'w/1'), inCluster(inCluster(kc, 'x'), 'w/1')]).toEqual([kc, west, west]);
  expect([clusterOf(kc), clusterOf(west)]).toEqual([undefined, 'w/1']);
  const jobs = defineResource()({ group: 'batch', version: 'v1', plural: 'jobs' });
  const watches = [kc.watch(jobs), west.watch(jobs, { namespace: 'a' }), west.follow(transitions(jobs, {})), west.follow(logs(jobs, { namespace: 'a', name: 'b' }))];
  const ends = watches.map((watch) => watch.subscribe(() => undefined));
  await pass(10);
  expect(server.requests).toHaveLength(1);
  expect([...new URL(server.last.url, 'http://x').searchParams.values()].filter((value) => value.startsWith('/')).map((path) => path.split('?')[0])).toEqual([
    '/apis/batch/v1/jobs', '/clusters/w%2F1/apis/batch/v1/namespaces/a/jobs', '/history/clusters/w%2F1/apis/batch/v1/jobs', '/logs/clusters/w%2F1/apis/batch/v1/namespaces/a/jobs/b',
  ]);
  ends.forEach((end) => end());
  for (const path of ['/api', '/apis', '/queues?x=1', '/version', '/auth/me', '/notifications/read', '/clusters']) void west.request(path, {}, () => undefined).catch(() => undefined);
  await pass(10);
  expect(server.requests.slice(1).map(({ url }) => url)).toEqual(['/clusters/w%2F1/api', '/clusters/w%2F1/apis', '/clusters/w%2F1/queues?x=1', '/clusters/w%2F1/version', '/auth/me', '/notifications/read', '/clusters']);
});

test('an address names a cluster that is not the default one, and none where there is one', () => {
  const view = parseView('#mine?cluster=west');
  expect(['east', 'west', 'north'].map((name) => viewIn(served, view, name).cluster)).toEqual(['', 'west', 'north']);
  expect(viewIn(served.slice(0, 1), view, 'east')).toBe(view);
});

test("one's own jobs of all clusters stand together, each says its own, and one that is away is named without taking the others'", async () => {
  location.hash = '#mine';
  const element = await show(() => <HomePage view={parseView('#mine')} />);
  const answer = async (cluster: 'east' | 'west', status = 200, ...jobs: readonly [name: string, state: string][]): Promise<void> => {
    const past = new MockPast();
    for (const [name, state] of jobs) past.record(name, state, { cluster, uid: `${cluster} ${name}` });
    for (const request of asked(cluster, '/history')) request.refuse(status, {}, JSON.stringify(status === 200 ? past.list(new URL(request.url, 'http://x').searchParams) : { detail: 'the cluster is away' }));
    await pass(10);
  };
  await answer('east', 200, ['train', 'Running']);
  expect(element.querySelector('[data-name="train"]')?.textContent).toContain('cluster east · team-a');
  await answer('west', 503);
  expect(element.querySelector('.clusters-missing')?.textContent).toMatch(/^west cannot be read at the moment\. the cluster is away/);
  expect(element.querySelector('[data-name="train"]')).not.toBeNull();
  await pass(6_000); // it is tried again by itself
  await answer('west', 200, ['train', 'Running'], ['wait', 'Pending']);
  expect(element.querySelector('.clusters-missing')).toBeNull();
  const links = [...element.querySelectorAll('li a')].map((link) => link.getAttribute('href'));
  expect(links.sort()).toEqual(['#jobs/team-a/train@east%20train', '#jobs/team-a/train@west%20train?cluster=west', '#jobs/team-a/wait@west%20wait?cluster=west']);
});

test.each(['cluster west', '集群 west'])('of a name beside a namespace it is said that it is a cluster: %s', async (said) => {
  const { t } = said.startsWith('c') ? await import('./texts.ts') : await inChinese(() => import('./texts.ts'));
  expect([t.named('west'), t.named(undefined)]).toEqual([said, '']);
});

test.each([
  ['mine', 403], ['mine', 404], ['history', 403], ['history', 404],
] as const)('a connection that is lost takes no rows away where another cluster is none of the user: %s, %s', async (at, status) => {
  location.hash = at === 'mine' ? '' : `#${at}`;
  const element = await show(() => (at === 'mine' ? <HomePage view={parseView('')} /> : <HistoryPage view={parseView('#history')} />));
  const answer = async (cluster: 'east' | 'west', code: number, ...jobs: readonly string[]): Promise<void> => {
    const past = new MockPast();
    for (const name of jobs) past.record(name, 'Running', { cluster, uid: `${cluster} ${name}` });
    for (const request of asked(cluster, '/history')) request.refuse(code, {}, JSON.stringify(code === 200 ? past.list(new URL(request.url, 'http://x').searchParams) : { detail: 'no' }));
    await pass(10);
  };
  const isThere = (): boolean => element.textContent.includes('train');
  await answer('east', status);
  await answer('west', 200, 'train');
  const stream = server.requests.findLast(({ url }) => url.startsWith('/stream'));
  const names = [...new URL(stream?.url ?? '', 'http://x').searchParams].filter(([, value]) => value.startsWith('/history')).map(([name]) => name);
  const body = stream?.accept(...names.map((name) => frame(`${name}.synced`, `e.${name}-1`, { seq: '1', count: 0 })));
  await pass(10);
  await answer('west', 200, 'train');
  expect(isThere()).toBe(true);
  body?.end();
  await pass(100);
  expect([isThere(), location.hash]).toEqual([true, at === 'mine' ? '' : '#history']);
});

test('a page of one cluster alone asks no other', async () => {
  await show(() => <HomePage view={parseView('#mine?cluster=west&only=cluster')} />);
  expect([asked('east', '/history').length, asked('west', '/history').length]).toEqual([0, 2]);
});

const list = (more: boolean, ...times: number[]): Leafed => ({ more, items: times.map((createdAt) => ({ createdAt, uid: String(createdAt) })) as unknown as Leafed['items'] });

test('lists of several clusters show no hole where one ends before another, and are leafed where that is', () => {
  const [long, short] = [list(true, 9, 8, 3), list(true, 7, 6)];
  const times = ({ items }: Leafed): number[] => items.map(({ createdAt }) => createdAt);
  expect(times(joined([long, short], false))).toEqual([9, 8, 7, 6]);
  expect([long, short].map((one) => isNext(one, [long, short], false))).toEqual([false, true]);
  const ended = list(false, 7, 6);
  expect(times(joined([long, ended], false))).toEqual([9, 8, 7, 6, 3]);
  expect(joined([long, ended], false).more).toBe(true);
  expect(joined([ended, list(false, 2)], false).more).toBe(false);
  expect(times(joined([long, short], true))).toEqual([9, 8, 7, 6, 3]);
  expect([long, short].map((one) => isNext(one, [long, short], true))).toEqual([true, true]);
});

test('the palette finds in all clusters, what comes late stands behind, and a cluster that does not answer is named', async () => {
  location.hash = '#mine?cluster=west';
  const west = inCluster(kc, 'west');
  const element = await show(() => (
    <KubecastProvider client={west}>
      <Palette onClose={() => undefined} />
    </KubecastProvider>
  ));
  const input = element.querySelector('input');
  const type = async (text: string): Promise<void> => {
    if (input) page?.type(input, text);
    await pass(500);
  };
  const answer = async (cluster: 'east' | 'west', status: number): Promise<void> => {
    for (const request of asked(cluster, 'search=')) request.refuse(status, {}, JSON.stringify({ items: request.url.startsWith('/history') ? [] : [{ metadata: { name: 'train', namespace: cluster } }], continue: '' }));
    await pass(10);
  };
  const found = (): (string | null)[] => [...element.querySelectorAll('[role=group]')].map((group) => `${group.getAttribute('aria-label')}: ${group.querySelector('[role=option]')?.textContent}`);
  await type('train');
  await answer('west', 200);
  const own = ['Job · west: train west', 'Pod · west: train west'];
  expect(found()).toEqual(own);
  expect(element.querySelector('[role=status]')?.textContent).toBe('Searching…');
  await answer('east', 200);
  expect(found()).toEqual([...own, 'Job · east: train east', 'Pod · east: train east']);
  act(() => element.querySelector<HTMLElement>('[aria-label="Job · east"] [role=option]')?.click());
  expect(location.hash).toBe('#jobs/east/train');
  await type('trai');
  await answer('west', 200);
  await answer('east', 503);
  expect(found()).toEqual(own);
  expect(element.querySelector('[role=status]')?.textContent).toBe('Could not search: east');
});

test('the palette finds once what is in the default cluster, also where the address names it', async () => {
  location.hash = '#mine?cluster=east';
  const element = await show(() => (
    <KubecastProvider client={inCluster(kc, 'east')}>
      <Palette onClose={() => undefined} />
    </KubecastProvider>
  ));
  const input = element.querySelector('input');
  if (input) page?.type(input, 'train');
  await pass(500);
  for (const cluster of ['east', 'west'] as const) {
    for (const request of asked(cluster, 'search=')) request.refuse(200, {}, JSON.stringify({ items: request.url.includes('/history') ? [] : [{ metadata: { name: 'train', namespace: cluster } }], continue: '' }));
  }
  await pass(10);
  expect([...element.querySelectorAll('[role=group]')].map((group) => group.getAttribute('aria-label'))).toEqual(['Job · east', 'Pod · east', 'Job · west', 'Pod · west']);
});

test('the choice keeps the page and what it is filtered by, leaves an object, and narrows what shows all', async () => {
  location.hash = '#jobs/team-a/train?ns=team-a&q=x';
  const element = await show(() => <ClusterChoice served={[...served.slice(0, 1), { name: 'west', default: false, state: 'stale' }]} view={useView()} />);
  const choice = element.querySelector('select');
  if (!choice) throw new Error('there is no choice');
  const choose = (value: string): void =>
    act(() => {
      choice.value = value;
      choice.dispatchEvent(new Event('change', { bubbles: true }));
    });
  expect([choice.value, ...[...choice.options].map(({ text }) => text)]).toEqual(['', 'east', 'west (away)']);
  choose('west');
  expect([location.hash, choice.value]).toEqual(['#jobs?cluster=west&ns=team-a&q=x', 'west']);
  act(() => {
    location.hash = '#history?cluster=west';
    window.dispatchEvent(new HashChangeEvent('hashchange'));
  });
  expect([...choice.options].map(({ text }) => text)).toEqual(['All clusters', 'east', 'west (away)']);
  expect(choice.value).toBe('*');
  choose('');
  expect([location.hash, choice.value]).toEqual(['#history?only=cluster', '']);
  choose('*');
  expect(location.hash).toBe('#history');
});

test('a few clusters are asked at once, and one that fails gives its place to the next', async () => {
  const begun: number[] = [];
  const fails: ((error: Error) => void)[] = [];
  const all = Array.from({ length: 9 }, (_, n) => inTurn(inCluster(kc, `${n}`), () => new Promise((_done, fail) => (begun.push(n), fails.push(fail)))).catch(() => undefined));
  await pass();
  expect(begun).toHaveLength(6);
  for (let n = 0; n < 9; n++) {
    fails[n]?.(new Error('away'));
    await pass();
  }
  await Promise.all(all);
  expect(begun).toHaveLength(9);
});

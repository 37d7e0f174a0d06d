import type { Kubecast, Transition } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { inChinese } from '../../../mock/chinese.ts';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { DatedByConnection } from '../connection/Dated.tsx';
import { parseView } from '../view/view.ts';
import { Chart } from './Chart.tsx';
import { Gpus } from './Gpus.tsx';
import { inSeconds, latestOf, OverviewPage } from './OverviewPage.tsx';
import { Teams } from './Teams.tsx';
import { Wrong } from './Wrong.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

/** In steps: what is to be rendered waits for the end of an `act`. */
const pass = async (ms = 0): Promise<void> => {
  for (let left = ms; left >= 0; left -= 250) await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 250)));
};
const watchesOf = (url: string): [string, string][] => [...new URL(url, 'http://x').searchParams].filter(([name]) => name.startsWith('w'));

test('the axis of a chart of an hour says the minute, and no second of it', () => {
  const steps = Array.from({ length: 12 }, (_, n) => Date.UTC(2030, 0, 1, 9) + n * 300_000);
  page = render(<Chart title="t" as="bars" steps={steps} series={[{ name: 'a', tone: 'done', values: steps.map(() => 1) }]} />);
  expect(page.element.querySelector('.chart-ends span')?.textContent).toMatch(/^\d\d?:\d\d( [AP]M)?$/);
});

test('a scale whose top is below a second does not say that it is nothing', () => {
  const top = (value: number): string | null | undefined => {
    page = render(<Chart title="t" as="lines" steps={[0, 1]} series={[{ name: 'a', tone: 'half', values: [0, value] }]} format={inSeconds} />);
    const said = page.element.querySelector('.chart-top')?.textContent;
    page.unmount();
    return said;
  };
  expect([top(0.4), top(1), top(90)]).toEqual(['<1s', '1s', '90s']);
});

test('where no history is kept, what there is now is still said to be old when the stream is lost', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <DatedByConnection>
        <OverviewPage view={parseView('#overview')} />
      </DatedByConnection>
    </KubecastProvider>,
  );
  await pass(20);
  // No history: requests for it are refused, and so is each stream that asks for it.
  const answered = new Set<unknown>();
  let body: ScriptedBody | undefined;
  for (let round = 0; round < 8; round++) {
    for (const request of server.requests.filter((one) => !answered.has(one))) {
      answered.add(request);
      const watches = watchesOf(request.url);
      if (!request.url.startsWith('/stream') || watches.some(([, path]) => path.startsWith('/history'))) {
        // Which watch it was that was refused is asked of each.
        const kept = !request.url.startsWith('/history') && !request.url.startsWith('/stream');
        request.refuse(kept ? 200 : 404, {}, kept ? '{}' : JSON.stringify({ detail: 'no history is kept' }));
      } else {
        const names = watches.map(([name]) => name);
        body = request.accept('retry: 100000\n\n', ...names.map((name, n) => frame(`${name}.synced`, `e.${names.slice(0, n + 1).map((one) => `${one}-1`).join('.')}`, { seq: '1', count: 0 })));
      }
    }
    await pass(250);
  }
  const dated = (): boolean => page.element.querySelector('[data-dated]') !== null;
  expect(page.element.querySelector('.chart-says')).not.toBeNull();
  expect(page.element.querySelectorAll('.tile')).toHaveLength(6);
  expect(dated()).toBe(false);
  body?.end();
  await pass(2_500);
  expect(dated()).toBe(true);
  expect(page.element.querySelector('.dated-why')?.textContent).toMatch(/as of .*cannot be reached|as of .*ended/);
});

test('of jobs of which nobody knows what they used, it is not said that they used nothing', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Teams view={parseView('#overview')} since="24h" signal={undefined} />
    </KubecastProvider>,
  );
  await pass(20);
  const used = (key: string, gpuHours: number, hoursUnknown: number): object => ({ key, from: null, jobs: 3, waitedSeconds: null, ranSeconds: null, cpuHours: gpuHours * 8, memoryHours: gpuHours * 32, gpuHours, hoursUnknown });
  server.last.refuse(200, {}, JSON.stringify({ items: [used('lost', 0, 2), used('in-part', 2, 1), used('idle', 0, 0)], continue: '' }));
  await pass(20);
  const cells = [...page.element.querySelectorAll('tbody tr')].map((row) => [row.querySelector('th')?.textContent, ...[...row.querySelectorAll('td')].slice(-3).map((cell) => cell.textContent)]);
  expect(cells).toEqual([['in-part', '16', '64', '2'], ['lost', 'not known', 'not known', 'not known'], ['idle', '0', '0', '0']]);
  expect(page.element.querySelector('.overview-teams > .none')?.textContent).toContain('What 3 jobs used is not known');
});

test('how long half of the jobs ran is said with of how many of them it is known', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Teams view={parseView('#overview')} since="24h" signal={undefined} />
    </KubecastProvider>,
  );
  await pass(20);
  const row = { key: 'n', from: null, jobs: 3, waitedSeconds: { count: 3, p50: 1, p90: 1, max: 1 }, ranSeconds: { count: 2, p50: 60, p90: 60, max: 60 }, cpuHours: 0, memoryHours: 0, gpuHours: 0, hoursUnknown: 0 };
  server.last.refuse(200, {}, JSON.stringify({ items: [row, { ...row, key: 'o', ranSeconds: null }], continue: '' }));
  await pass(20);
  const cells = [...page.element.querySelectorAll('tbody td')].filter((_, n) => [1, 3].includes(n % 7)).map((cell) => [cell.textContent, cell.getAttribute('title')]);
  expect(cells).toEqual([['1s', null], ['60s', 'Known of 2 of 3 jobs'], ['1s', null], ['–', 'Known of 0 of 3 jobs']]);
});

test('of no node at all it is not said that all are ready', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <Wrong view={parseView('#overview')} since="24h" signal={undefined} />
    </KubecastProvider>,
  );
  await pass(20);
  const stream = server.requests.find(({ url }) => url.startsWith('/stream'));
  const names = watchesOf(stream?.url ?? '').map(([name]) => name);
  const said = (): string | null | undefined => page.element.querySelector('[aria-label=Nodes] .none')?.textContent;
  expect(said()).toBe('Loading…');
  stream?.accept(...names.map((name, n) => frame(`${name}.synced`, `e.${names.slice(0, n + 1).map((one) => `${one}-1`).join('.')}`, { seq: '1', count: 0 })));
  await pass(250);
  expect(said()).toBe('There is no node here.');
  const { t } = await inChinese(() => import('./texts.ts'));
  expect([0, 1].map(t.nodesWell)).toEqual(['这里没有节点。', '全部 1 个节点均已就绪。']);
});

const gpuNode = { metadata: { name: 'node-1', uid: 'node-1' }, status: { allocatable: { 'nvidia.com/gpu': '64' } } };
const showGpus = async (hash: string): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <Gpus nodes={[gpuNode]} view={parseView(hash)} />
    </KubecastProvider>,
  );
  await pass(20);
};
/** Each pod has one GPU. */
const countGpus = async (count: number, namespaces?: readonly string[]): Promise<void> => {
  const counts = (path: string): object[] => {
    const params = new URL(path, 'http://x').searchParams;
    const by = params.get('countBy') ?? '';
    expect(by.split(',')[1]).toBe('$requests.nvidia\\.com/gpu');
    expect(params.get('fieldSelector')).toContain('$requests.nvidia\\.com/gpu!=');
    return [{ values: [by.startsWith('metadata') ? 'team-a' : 'node-1', '1'], count }];
  };
  const ids: string[] = [];
  server.last.accept(
    ...watchesOf(server.last.url).flatMap(([name, path]) => {
      ids.push(`${name}-1`);
      const id = `e.${ids.join('.')}`;
      const narrowed = namespaces ? [frame(`${name}.narrowed`, id, { namespaces, names: {} })] : [];
      return [...narrowed, frame(`${name}.counts`, id, { counts: counts(path), resourceVersion: '1' })];
    }),
  );
  await pass(20);
};
const titles = (): (string | null)[] => [...page.element.querySelectorAll('h2')].map(({ textContent }) => textContent);

test('how many GPUs are in use is not said before that is known, nor to who may see no pods', async () => {
  await showGpus('#overview');
  expect(page.element.textContent).toBe('GPUsLoading…');
  for (let n = 0; n < 8; n++) {
    for (const request of server.requests.slice(-6)) request.refuse(403, {}, '{}');
    await pass(250);
  }
  expect(page.element.textContent).toBe('');
});

test('GPUs of pods that may not be seen make the number a least one, and a namespace is named', async () => {
  await showGpus('#overview');
  await countGpus(3);
  expect(titles()).toEqual(['GPUs: 3 of 64 in use', 'GPUs by node']);
  page.unmount();
  await pass(60_000);
  await showGpus('#overview?ns=team-a');
  expect(watchesOf(server.last.url).every(([, path]) => path.startsWith('/api/v1/namespaces/team-a/pods'))).toBe(true);
  await countGpus(3, ['team-a']);
  expect(titles()).toEqual(['GPUs: at least 3 of 64 in use in team-a', 'GPUs by node in team-a, at least']);
});

test('the latest failures are those that happened last, not those that were found last', () => {
  const found = [['1', 300], ['2', 100], ['3', 200], ['4', 100]] as const;
  const transitions = found.map(([seq, at]) => ({ seq, at }) as unknown as Transition);
  expect(latestOf(transitions, 3).map(({ seq }) => seq)).toEqual(['1', '3', '4']);
});

test('a number that is too long for its tile is smaller: the tile knows how long it is', async () => {
  page = render(
    <KubecastProvider client={kc}>
      <OverviewPage view={parseView('#overview')} />
    </KubecastProvider>,
  );
  await pass(20);
  expect(page.element.querySelector<HTMLElement>('.tile-count')?.style.getPropertyValue('--length')).toBe('1');
});

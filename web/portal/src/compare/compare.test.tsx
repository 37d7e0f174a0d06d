import type { Kubecast, KubeObject, PastJob } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { useView } from '../view/view.ts';
import { Compare } from './Compare.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
beforeEach(() => (location.hash = '#jobs/n/train@b?tab=compare'));
afterEach(() => page.unmount());

const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const run = (uid: string, createdAt: number, more: Partial<PastJob> = {}): PastJob => ({
  namespace: 'n', name: 'train', uid, owner: 'ann', queue: '', state: 'Succeeded', since: createdAt + 9, reason: '', message: '', attempt: 1, createdAt, startedAt: undefined, endedAt: undefined, durations: {},
  reasons: [], progress: undefined, parent: undefined, children: 0, hours: null, ...more,
});
const cause = { text: 'main was OOM-killed (exit 137) on n1', reason: 'OOMKilled', container: 'main', exitCode: 137, signal: null, pod: 'train-0', node: 'n1', pods: 1 };
const b = run('b', 200, {
  state: 'Failed', cause, waited: { over: 3_000, since: undefined }, ran: { over: 71_000, since: undefined }, durations: { Pending: 3, Running: 71 }, requests: { memory: '4Gi' }, hours: { cpu: 1, memory: 2, gpu: 0 },
});
const a = run('a', 100, { waited: undefined, ran: { over: 600_000, since: undefined }, durations: { Queued: 60, Running: 600 }, requests: { memory: '8Gi', 'nvidia.com/gpu': '2' }, hours: { cpu: 1, memory: 2, gpu: 3.25 } });
const c = run('c', 300);
const spec = (uid: string, limit: string, more: object = {}): KubeObject => ({ metadata: { uid, name: 'train', namespace: 'n' }, spec: { backoffLimit: 3, limit, ...more } }) as unknown as KubeObject;

function Shown({ others, named }: { readonly others: readonly PastJob[]; readonly named: KubeObject | undefined }) {
  return <Compare here={b} others={others} named={named} view={useView()} />;
}

const show = async (others: readonly PastJob[], named?: KubeObject): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <Shown others={others} named={named} />
    </KubecastProvider>,
  );
  await pass();
};
/** Answers with the spec of each run that is asked for. */
const answer = async (specs: Record<string, KubeObject | number | string>): Promise<void> => {
  for (const request of server.requests) {
    const found = specs[new URL(request.url, 'http://x').searchParams.get('uid') ?? ''];
    if (found === undefined) throw new Error(`nobody thought of ${request.url}`);
    if (typeof found === 'number') request.refuse(found, {}, '{"detail":"jobs is forbidden"}');
    else request.refuse(200, {}, typeof found === 'string' ? found : JSON.stringify(found));
  }
  await pass();
};
const lines = (): Record<string, string[]> =>
  Object.fromEntries([...page.element.querySelectorAll('tbody tr:not(.compare-section)')].map((row) => [row.querySelector('th')?.textContent ?? '', [...row.querySelectorAll('td')].map((cell) => cell.textContent ?? '')]));
const differ = (): (string | undefined)[] => [...page.element.querySelectorAll('tr[data-differs] > th')].map((one) => one.textContent ?? undefined);

test('how two runs ended is told in the words in which the page does, and not in those of Kubernetes', async () => {
  await show([run('a', 100, { state: 'Failed', cause: { ...cause, reason: 'Error' } })]);
  expect(lines().State).toEqual(['FailedOOM-killed', 'FailedContainer failed']);
});

test('a run is compared with the one before, of the first one with the next, unless another one is chosen, which the address keeps', async () => {
  await show([c, a]);
  const chosen = (): string | undefined => page.element.querySelector('select')?.value;
  expect(chosen()).toBe('a');
  page.act(() => {
    const select = page.element.querySelector('select');
    if (!select) throw new Error('there is nothing to choose from');
    select.value = 'c';
    select.dispatchEvent(new Event('change', { bubbles: true }));
  });
  expect(location.hash).toBe('#jobs/n/train@b?tab=compare&compare=c');
  expect(chosen()).toBe('c');
  page.unmount();
  location.hash = '#jobs/n/train@b?tab=compare';
  await show([c, run('d', 250)]);
  expect(chosen()).toBe('d');
});

test('how both ended, their times and what they used stand beside each other, and what nobody knows is not made up', async () => {
  await show([a]);
  await answer({ a: 404, b: 404 });
  expect(lines()).toMatchObject({
    State: ['FailedOOM-killed', 'Succeeded'], Why: [cause.text, '–'], Waited: ['3s', '–'], 'Run time': ['71s', '≥ 10m, seen late'], 'In Queued': ['–', '60s'], 'In Pending': ['3s', '–'],
    'memory requested': ['4Gi', '8Gi'], 'nvidia.com/gpu requested': ['–', '2'], 'GPU hours': ['0', '3.3'],
  });
  expect(Object.keys(lines())).not.toContain('Queue'); // neither has one
  expect(differ()).toContain('memory requested');
  expect(differ()).not.toContain('CPU hours');
  expect(page.element.textContent).toContain('It is not kept any more of one of them.');
});

test('what they were told to do differs where it does, of a run that is there as its object says it', async () => {
  await show([a], spec('b', '4Gi'));
  await answer({ a: spec('a', '8Gi', { args: ['x'] }) });
  expect(server.requests.map(({ url }) => url)).toEqual(['/history/apis/batch/v1/namespaces/n/jobs/train?uid=a&view=spec']);
  expect([...page.element.querySelectorAll('tr[data-path]')].map((row) => row.textContent)).toEqual(['spec.args[0]not setx', 'spec.limit4Gi8Gi']);
});

test('numbers beyond 2^53 that differ are told apart, as they are, of what is kept and of the object that is there', async () => {
  const exact = (uid: string, limit: string): string => JSON.stringify(spec(uid, 'N')).replace('"N"', limit);
  await show([a]);
  await answer({ a: exact('a', '9007199254740993'), b: exact('b', '9007199254740992') });
  const differences = (): (string | null)[] => [...page.element.querySelectorAll('tr[data-path]')].map((row) => row.textContent);
  expect(differences()).toEqual(['spec.limit90071992547409929007199254740993']);
  page.unmount();
  server.requests.length = 0;
  await show([a], JSON.parse(exact('b', '9007199254740995')) as KubeObject); // as a stream tells it
  expect(page.element.textContent).not.toContain('not kept');
  const own = server.requests.find(({ url }) => !url.includes('uid='));
  own?.refuse(200, {}, exact('b', '9007199254740995'));
  server.requests.find(({ url }) => url.includes('uid=a'))?.refuse(200, {}, exact('a', '9007199254740993'));
  await pass();
  expect(differences()).toEqual(['spec.limit90071992547409959007199254740993']);
});

test('of a long text only the lines that differ are shown', async () => {
  await show([a]);
  await answer({ a: spec('a', 'one\ntwo\nthree\nfour'), b: spec('b', 'one\ntwo\n3\nfour') });
  expect([...page.element.querySelectorAll('tr[data-path] td')].map((cell) => cell.textContent)).toEqual(['…3…', '…three…']);
});

test('a spec that may not be seen is said to be so, in the words of the gateway', async () => {
  await show([a]);
  await answer({ a: 403, b: spec('b', '1') });
  expect(page.element.textContent).toContain('It cannot be shown: jobs is forbidden');
});

test('a run that is not listed is looked for, and one that is not known is said to be so', async () => {
  location.hash = '#jobs/n/train@b?tab=compare&compare=old';
  await show([a]);
  expect(server.requests.map(({ url }) => url)).toEqual(['/history/apis/batch/v1/namespaces/n/jobs/train?uid=old']);
  expect(page.element.textContent).toContain('Loading');
  expect(page.element.textContent).not.toContain('not known');
  server.last.refuse(200, {}, '{"items":[]}');
  await pass();
  expect(page.element.textContent).toContain('That run is not known');
});

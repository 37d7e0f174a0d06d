import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act, type ReactNode } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import type { ScriptedFetch, ScriptedRequest } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { Wrong } from '../overview/Wrong.tsx';
import { HasQueues } from '../pages/shown.ts';
import { parseView } from '../view/view.ts';
import { QueuesPage } from './QueuesPage.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const pass = (ms = 20): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const show = async (node: ReactNode): Promise<void> => {
  page = render(<KubecastProvider client={kc}>{node}</KubecastProvider>);
  await pass();
};
const asked = (): ScriptedRequest[] => server.requests.filter(({ url }) => url === '/queues');
const refusal = 'you may list neither localqueues nor clusterqueues';
const refuse = async (): Promise<void> => {
  asked().at(-1)?.refuse(403, {}, JSON.stringify({ detail: refusal }));
  await pass();
};

test('queues that may not be seen are said to be so in the words of the gateway, and are there once they may be', async () => {
  await show(<QueuesPage view={parseView('#queues')} />);
  await refuse();
  expect(page.element.querySelector('.job-none')?.textContent).toContain(refusal);
  await pass(60_000);
  expect(asked()).toHaveLength(1);
  page.act(() => page.element.querySelector<HTMLElement>('.job-none button')?.click());
  await pass();
  asked().at(-1)?.refuse(200, {}, JSON.stringify({ items: [{ name: 'gpu', namespace: 'team-a', kind: 'LocalQueue', clusterQueue: 'all', cohort: '', waiting: 2, running: 1, resources: [] }] }));
  await pass();
  expect([page.element.querySelector('.row-link')?.textContent, page.element.textContent.includes(refusal)]).toEqual(['gpu', false]);
});

test.each([
  [['apps', 'batch'], 'This cluster has no queues: neither Kueue nor Volcano is installed in it.'],
  [['batch', 'kueue.x-k8s.io'], 'There are no queues that you may see.'],
])('of a cluster that serves %j it is said whether it has no queues, or none that may be seen', async (groups, said) => {
  await show(<QueuesPage view={parseView('#queues')} />);
  asked().at(-1)?.refuse(200, {}, '{"items":[]}');
  await pass();
  await pass(); // what has been rendered asks
  server.requests.findLast(({ url }) => url === '/apis')?.refuse(200, {}, JSON.stringify({ items: groups.map((name) => ({ metadata: { name } })) }));
  await pass();
  expect(page.element.querySelector('.job-none')?.textContent).toContain(said);
});

test('the overview does not say that there is no queue to who may see none', async () => {
  await show(
    <HasQueues value>
      <Wrong view={parseView('#overview')} since="24h" signal={0} />
    </HasQueues>,
  );
  const parts = (): (string | null)[] => [...page.element.querySelectorAll('h2')].map(({ textContent }) => textContent);
  expect(parts()).toContain('Queues');
  await refuse();
  expect(parts()).not.toContain('Queues');
});

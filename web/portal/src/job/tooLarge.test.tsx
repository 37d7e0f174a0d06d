import { KubecastProvider } from '@kubecast/sdk/react';
import type { Kubecast, KubeObject, PastJob } from '@kubecast/sdk';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { TooLarge } from './TooLarge.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
afterEach(() => page.unmount());

const pass = (ms = 20): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const gpus = (count: string): KubeObject =>
  ({ metadata: { name: 'j', uid: 'u' }, spec: { template: { spec: { containers: [{ name: 'main', resources: { requests: { cpu: '2' }, limits: { 'nvidia.com/gpu': count } } }] } } } }) as unknown as KubeObject;
const waits = { state: 'Pending', message: '0/10 nodes are available: 9 Insufficient nvidia.com/gpu.' } as PastJob;

const show = async (past: PastJob, job: KubeObject): Promise<readonly (readonly [string, string])[]> => {
  page = render(
    <KubecastProvider client={kc}>
      <TooLarge past={past} job={job} />
    </KubecastProvider>,
  );
  await pass();
  const url = server.requests.at(-1)?.url;
  return url === undefined ? [] : [...new URL(url, 'http://x').searchParams].filter(([, path]) => path.startsWith('/api/'));
};
const count = async (...amounts: string[]): Promise<void> => {
  const [name = ''] = [...new URL(server.last.url, 'http://x').searchParams].find(([, path]) => path.startsWith('/api/')) ?? [];
  server.last.accept(frame(`${name}.counts`, `e.${name}-1`, { counts: amounts.map((amount) => ({ values: [amount], count: 3 })), resourceVersion: '1' }));
  await pass();
};

test('a job that asks for more than any node has is not said to wait for something to become free', async () => {
  const asked = await show(waits, gpus('64'));
  expect(asked.map(([, path]) => path.split('?')[0])).toEqual(['/api/v1/nodes']);
  expect(new URL(asked[0]?.[1] ?? '', 'http://x').searchParams.get('countBy')).toBe('status.allocatable.nvidia\\.com/gpu');
  expect(page.element.textContent).toBe('');
  await count('8', '4', '');
  expect(page.element.textContent).toBe('It fits on no node, however free: a pod asks for 64 nvidia.com/gpu, the largest node has 8.');
});

test('a job that fits on a node that has no room now waits for that', async () => {
  await show(waits, gpus('8'));
  await count('8', '4');
  expect(page.element.textContent).toBe('');
});

test('whoever may not see the nodes is told nothing of them, nor are they asked of a job that runs', async () => {
  expect(await show({ ...waits, state: 'Running' }, gpus('64'))).toEqual([]);
  page.unmount();
  await show(waits, gpus('64'));
  server.last.refuse(403, {}, '{}');
  await pass(300);
  expect(page.element.textContent).toBe('');
});

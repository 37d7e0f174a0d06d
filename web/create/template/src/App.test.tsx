import { createKubecast, type Kubecast } from '@kubecast/sdk';
import { MockGateway } from '@kubecast/sdk/testing';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { App } from './App.tsx';

let gateway: MockGateway;
let kc: Kubecast;
let root: Root;

beforeEach(() => {
  gateway = new MockGateway();
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
  root = createRoot(document.body.appendChild(document.createElement('main')));
  root.render(<App signedIn={kc} />);
});

afterEach(() => {
  root.unmount();
  kc.close();
  document.body.replaceChildren();
});

const put = (name: string, active: number) => gateway.cluster.put('jobs', { metadata: { name, namespace: 'team-a' }, status: { active } });
const rows = () => [...document.querySelectorAll('tbody tr')].map((row) => row.textContent);
const sees = (expected: () => void) => vi.waitFor(expected, { timeout: 30_000 });

test('jobs are shown as they come and go', async () => {
  const { metadata } = put('train', 1);
  await sees(() => expect(rows()).toEqual(['team-atrain100']));
  put('eval', 2);
  await sees(() => expect(rows()).toHaveLength(2));
  gateway.cluster.remove('jobs', metadata.uid);
  await sees(() => expect(rows()).toEqual(['team-aeval200']));
});

test('a job has a page', async () => {
  put('train', 1);
  await sees(() => expect(rows()).toHaveLength(1));
  document.querySelector<HTMLButtonElement>('tbody button')?.click();
  await sees(() => expect(document.querySelector('article p')?.textContent).toBe('1 active, 0 succeeded, 0 failed'));
});

test('while the gateway is away the rows stay, and are said to be old', async () => {
  put('train', 1);
  await sees(() => expect(rows()).toHaveLength(1));
  gateway.away = true;
  gateway.fault.cut();
  await sees(() => expect(document.querySelector('caption')?.textContent).toMatch(/^Jobs, as of /));
  expect(rows()).toHaveLength(1);
});

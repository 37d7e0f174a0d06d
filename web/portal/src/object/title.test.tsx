import { createKubecast, type Kubecast } from '@kubecast/sdk';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { parseView } from '../view/view.ts';
import type { Standing } from './title.ts';

let page: Rendered;
let kc: Kubecast;
beforeEach(() => {
  kc = createKubecast({ token: () => 't', fetch: () => new Promise(() => undefined) });
  vi.resetModules();
});
afterEach(() => {
  page.unmount();
  kc.close();
  localStorage.removeItem('kubecast.language');
  vi.resetModules();
});

async function titled(language: string, standing: Standing | undefined, unread = 0): Promise<string> {
  localStorage.setItem('kubecast.language', language);
  vi.resetModules();
  const { KubecastProvider } = await import('@kubecast/sdk/react');
  const { useTitle } = await import('../app/title.ts');
  const { ObjectFrame } = await import('./ObjectFrame.tsx');
  const watched = { status: 'live' as const, error: undefined, retry: () => undefined };
  function Page(): React.ReactNode {
    useTitle('train-3', '', unread);
    return <ObjectFrame view={parseView('#jobs/n/train-3')} namespace="n" name="train-3" table={{ href: '#jobs', title: 'Jobs' }} standing={standing} command="describe job" watched={watched} there missing="" facts="" tabs={[]} />;
  }
  page = render(
    <KubecastProvider client={kc}>
      <Page />
    </KubecastProvider>,
  );
  return document.title;
}

test.each<[string, Standing | undefined, string]>([
  ['en', undefined, 'train-3 · Kubecast'],
  ['en', { state: 'Running', cause: '' }, '▶ train-3: Running · Kubecast'],
  ['en', { state: 'Failed', cause: 'OOMKilled' }, '✗ train-3: OOM-killed · Kubecast'],
  ['en', { state: 'Failed', cause: '' }, '✗ train-3: Failed · Kubecast'],
  ['en', { state: 'CrashLoopBackOff', cause: '' }, '↻ train-3: CrashLoopBackOff · Kubecast'],
  ['zh-CN', { state: 'Failed', cause: 'OOMKilled' }, '✗ train-3：内存不足 · Kubecast'],
  ['zh-CN', { state: 'Pending', cause: '' }, '◌ train-3：等待中 · Kubecast'],
])('tabs of objects are told apart by how these are doing: in %s %j', async (language, standing, title) => {
  expect(await titled(language, standing)).toBe(title);
});

test('what is unread stands first, and the page that comes after has its own name', async () => {
  expect(await titled('en', { state: 'Succeeded', cause: '' }, 3)).toBe('(3) ✓ train-3: Succeeded · Kubecast');
  page.unmount();
  expect(await titled('en', undefined)).toBe('train-3 · Kubecast');
});

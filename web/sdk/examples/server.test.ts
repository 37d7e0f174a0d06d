// What a server renders must say that nothing is known yet, and must not begin to watch anything.
import { createElement, type FunctionComponent } from 'react';
import { renderToString as renderReact } from 'react-dom/server';
import { expect, test, vi } from 'vitest';
import { render } from 'svelte/server';
import { createSSRApp, h } from 'vue';
import { renderToString } from 'vue/server-renderer';
import { createKubecast } from '@kubecast/sdk';
import { kubecast } from '@kubecast/sdk/vue';
import { MockGateway } from '../../mock/index.ts';
import { ScriptedFetch } from '../../mock/fetch.ts';
import SvelteApp from './App.svelte';
import { jar } from './standins/next-headers.ts';
import VueJobs from './RunningJobs.vue';

test('a server renders each of them, and watches nothing', async () => {
  const server = new ScriptedFetch();
  const kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
  expect(await renderToString(createSSRApp({ render: () => h(VueJobs, { team: 'a' }) }).use(kubecast(kc)))).toContain('Loading');
  expect(render(SvelteApp, { props: { kc, first: 'a', told: () => undefined } }).body).toContain('Loading');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(server.requests).toHaveLength(0);
  kc.close();
});

test('Next renders a component for browsers on its server first: with what it was given, and without a stream', async () => {
  const gateway = new MockGateway();
  vi.stubGlobal('fetch', gateway.fetch);
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal); // two seconds, which a busy machine may need
  jar.set('token', { value: 'let-me-in' });
  gateway.cluster.put('jobs', { metadata: { name: 'train', namespace: 'team-a' }, status: { active: 1 } });
  const { default: Page } = (await import('guide:ssr/app/page.tsx')) as unknown as { default: () => Promise<{ readonly type: FunctionComponent; readonly props: object }> };
  const { type, props } = await Page();
  await expect.poll(() => gateway.streams.size, { timeout: 60_000 }).toBe(0);
  expect(renderReact(createElement(type, props))).toBe('<ul data-status="stale"><li>train</li></ul>');
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(gateway.requests).toHaveLength(1); // the page's own
  vi.unstubAllGlobals();
  vi.restoreAllMocks();
});

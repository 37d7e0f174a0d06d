// @vitest-environment happy-dom
import { act, createElement, StrictMode, type ReactNode } from 'react';
import { createRoot } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { afterEach, beforeEach, expect, test } from 'vitest';
import '../../mock/setup.ts';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import { createKubecast, type Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import { KubecastProvider, useWatch } from './react.ts';
import { defineResource } from './resource.ts';

const jobs = defineResource<KubeObject & { readonly status?: { readonly active?: number } }>()({ group: 'batch', version: 'v1', plural: 'jobs' });

/** What a portal's developer writes first. */
function RunningJobs({ team }: { team: string }): ReactNode {
  const { data, status } = useWatch(jobs, { namespace: team, fields: ['status.active'] });
  if (status === 'loading') return 'Loading';
  return `${status}: ${data.filter((job) => job.status?.active).map((job) => job.metadata.name).join()}`;
}

let server: ScriptedFetch;
let kc: Kubecast;
beforeEach(() => {
  server = new ScriptedFetch();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
});
afterEach(() => kc.close());

const pages = (...teams: string[]): ReactNode =>
  createElement(StrictMode, undefined, createElement(KubecastProvider, { client: kc }, ...teams.map((team) => createElement(RunningJobs, { team, key: team }))));
const settle = (): Promise<void> => act(() => new Promise<void>((resolve) => setTimeout(resolve, 20)));
const open = () => server.requests.filter(({ aborted }) => !aborted);

test('the obvious component works in StrictMode, beside others on one stream, and leaves none behind', async () => {
  const at = document.createElement('div');
  const root = createRoot(at);
  act(() => root.render(pages('team-a', 'team-b')));
  expect(at.textContent).toBe('LoadingLoading');
  await settle();
  expect(open()).toHaveLength(1);
  server.last.accept(
    frame('w0.added', 'e', { metadata: { name: 'one', uid: '1' }, status: { active: 1 } }),
    frame('w0.added', 'e', { metadata: { name: 'two', uid: '2' }, status: {} }),
    frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }),
    frame('w1.synced', 'e.w0-1.w1-1', { resourceVersion: '1', count: 0 }),
  );
  await settle();
  expect(at.textContent).toBe('live: onelive: ');
  act(() => root.unmount());
  await settle();
  expect(open()).toHaveLength(0);
});

test('a server renders it, and watches nothing', async () => {
  expect(renderToString(pages('team-a'))).toBe('Loading');
  await settle();
  expect(server.requests).toHaveLength(0);
});

// @vitest-environment happy-dom
// One list in four frameworks: each must show what there is, follow its property to another namespace, share the page's stream, and leave
// nothing open behind.
import { act, createElement, StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { createComponent, createSignal } from 'solid-js';
import { render } from 'solid-js/web';
import { flushSync, mount, unmount } from 'svelte';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createApp, h, ref } from 'vue';
import { createKubecast, type Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { KubecastContext } from '@kubecast/sdk/solid';
import { kubecast } from '@kubecast/sdk/vue';
import '../../mock/setup.ts';
import { frame, ScriptedFetch } from '../../mock/fetch.ts';
import SvelteApp from './App.svelte';
import { RunningJobs as ReactJobs } from './RunningJobs.tsx';
import VueJobs from './RunningJobs.vue';
import { RunningJobs as SolidJobs } from './running-jobs.solid.ts';

interface Mounted {
  readonly move: (team: string) => void;
  readonly end: () => void;
}

const frameworks: Record<string, (at: Element, kc: Kubecast, team: string) => Mounted> = {
  react: (at, client, first) => {
    const root = createRoot(at);
    const move = (team: string): void =>
      act(() => root.render(createElement(StrictMode, undefined, createElement(KubecastProvider, { client }, createElement(ReactJobs, { team })))));
    move(first);
    return { move, end: () => act(() => root.unmount()) };
  },
  vue: (at, kc, first) => {
    const team = ref(first);
    const app = createApp({ render: () => h(VueJobs, { team: team.value }) }).use(kubecast(kc));
    app.mount(at);
    return { move: (next) => void (team.value = next), end: () => app.unmount() };
  },
  svelte: (at, kc, first) => {
    let move: (team: string) => void = () => undefined;
    const app = mount(SvelteApp, { target: at, props: { kc, first, told: (to: (team: string) => void) => (move = to) } });
    flushSync();
    return { move: (team) => move(team), end: () => void unmount(app) };
  },
  solid: (at, value, first) => {
    const [team, move] = createSignal(first);
    const end = render(
      () =>
        createComponent(KubecastContext.Provider, {
          value,
          get children() {
            return createComponent(SolidJobs, {
              get team() {
                return team();
              },
            });
          },
        }),
      at,
    );
    return { move, end };
  },
};

let server: ScriptedFetch;
let kc: Kubecast;
beforeEach(() => {
  server = new ScriptedFetch();
  kc = createKubecast({ token: () => 't', fetch: server.fetch, linger: 1 });
});
afterEach(() => kc.close());

const settle = (): Promise<void> => act(() => new Promise<void>((resolve) => setTimeout(resolve, 20)));
const open = () => server.requests.filter(({ aborted }) => !aborted);
const job = (name: string): object => ({ metadata: { name, uid: name } });

describe.each(Object.entries(frameworks))('%s', (_, show) => {
  test('a list of running jobs', async () => {
    const at = document.createElement('div');
    const { move, end } = show(at, kc, 'team-a');
    await settle();
    expect(at.textContent.trim()).toBe('Loading');
    expect(open().map(({ url }) => decodeURIComponent(url))).toEqual([expect.stringContaining('/apis/batch/v1/namespaces/team-a/jobs?fieldSelector=status.active')]);
    server.last.accept(frame('w0.added', 'e', job('one')), frame('w0.added', 'e', job('two')), frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: 2 }));
    await settle();
    expect([...at.querySelectorAll('li')].map((li) => li.textContent)).toEqual(['one', 'two']);
    expect(at.querySelector('ul')?.dataset['status']).toBe('live');

    move('team-b');
    await settle();
    expect(at.textContent.trim()).toBe('Loading');
    expect(decodeURIComponent(server.last.url)).toContain('team-b');
    server.last.accept(frame('w1.added', 'e', job('three')), frame('w1.synced', 'e.w1-1', { resourceVersion: '1', count: 1 }));
    await settle();
    expect(at.textContent.trim()).toBe('three');
    expect(open()).toHaveLength(1); // the stream of before stayed until then

    end();
    await settle();
    expect(open()).toHaveLength(0);
  });
});

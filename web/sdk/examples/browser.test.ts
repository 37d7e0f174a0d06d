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
import { frame, ScriptedFetch, type ScriptedRequest } from '../../mock/fetch.ts';
import SvelteApp from './App.svelte';
import VueNewest from './NewestJobs.vue';
import { NewestJobs as ReactNewest } from './NewestJobs.tsx';
import { NewestJobs as SolidNewest } from './newest-jobs.solid.ts';
import { RunningJobs as ReactJobs } from './RunningJobs.tsx';
import VueJobs from './RunningJobs.vue';
import { RunningJobs as SolidJobs } from './running-jobs.solid.ts';

/** A team: its list of running jobs; a number: the page of all jobs that begins there. */
type What = string | number;

interface Mounted {
  readonly move: (to: What) => void;
  readonly end: () => void;
}

const frameworks: Record<string, (at: Element, kc: Kubecast, what: What) => Mounted> = {
  react: (at, client, first) => {
    const root = createRoot(at);
    const part = (what: What) => (typeof what === 'number' ? createElement(ReactNewest, { offset: what }) : createElement(ReactJobs, { team: what }));
    const move = (what: What): void => act(() => root.render(createElement(StrictMode, undefined, createElement(KubecastProvider, { client }, part(what)))));
    move(first);
    return { move, end: () => act(() => root.unmount()) };
  },
  vue: (at, kc, first) => {
    const what = ref(first);
    const render = () => (typeof what.value === 'number' ? h(VueNewest, { offset: what.value }) : h(VueJobs, { team: what.value }));
    const app = createApp({ render }).use(kubecast(kc));
    app.mount(at);
    return { move: (next) => void (what.value = next), end: () => app.unmount() };
  },
  svelte: (at, kc, first) => {
    let move: (to: What) => void = () => undefined;
    const app = mount(SvelteApp, { target: at, props: { kc, first, told: (to: (what: What) => void) => (move = to) } });
    flushSync();
    return { move: (what) => move(what), end: () => void unmount(app) };
  },
  solid: (at, value, first) => {
    const [what, move] = createSignal<What>(first);
    const part = () =>
      typeof first === 'number'
        ? createComponent(SolidNewest, {
            get offset() {
              return what() as number;
            },
          })
        : createComponent(SolidJobs, {
            get team() {
              return what() as string;
            },
          });
    const end = render(
      () =>
        createComponent(KubecastContext.Provider, {
          value,
          get children() {
            return part();
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

  test('a page of all jobs, counts, one object, and a question about permissions', async () => {
    const at = document.createElement('div');
    const { move, end } = show(at, kc, 0);
    const said = (): string => at.textContent.replace(/\s+/g, ' ').trim();
    await settle();
    expect(said()).toBe('loading: of ?; ; none; no logs');
    const review = server.requests.find(({ url }) => url.endsWith('/selfsubjectaccessreviews'));
    review?.refuse(201, {}, JSON.stringify({ status: { allowed: true } }));
    const stream = (): ScriptedRequest => {
      const last = server.requests.filter(({ url }) => url.startsWith('/stream')).at(-1);
      if (!last) throw new Error('there is no stream');
      return last;
    };
    // Each framework begins its watches in an order of its own.
    const name = (part: string): string => [...new URL(stream().url, 'http://gateway').searchParams].findLast(([, path]) => path.includes(part))?.[0] ?? '';
    const [rows, counts, train] = [name('limit=1'), name('countBy'), name('/train')];
    stream().accept(
      frame(`${rows}.added`, 'e', job('five')),
      frame(`${rows}.page`, 'e', { uids: ['five'], offset: 0, total: 5, resourceVersion: '1' }),
      frame(`${counts}.counts`, 'e', { counts: [{ value: '1', count: 5 }], resourceVersion: '1' }),
      frame(`${train}.added`, 'e', job('train')),
      frame(`${train}.synced`, `e.${rows}-1.${counts}-1.${train}-1`, { resourceVersion: '1', count: 1 }),
    );
    await settle();
    expect(said()).toBe('live: five of 5; 1×5; train; logs');

    move(1);
    await settle();
    expect(said()).toBe('stale: five of 5; 1×5; train; logs');
    const next = name('offset=1');
    stream().accept(frame(`${next}.added`, 'e', job('four')), frame(`${next}.page`, `e.${next}-1`, { uids: ['four'], offset: 1, total: 5, resourceVersion: '1' }));
    await settle();
    expect(said()).toBe('live: four of 5; 1×5; train; logs');

    end();
    await settle();
    expect(open().filter(({ url }) => url.startsWith('/stream'))).toHaveLength(0);
  });
});

// @vitest-environment happy-dom
// Lists that grow page by page, in four frameworks: a page more, another question while one is under way, a row that comes, a page that fails.
import { act, createElement } from 'react';
import { createRoot as reactRoot } from 'react-dom/client';
import { createComponent, createRenderEffect, createRoot, createSignal } from 'solid-js';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createApp, shallowRef, type Ref } from 'vue';
import { createKubecast, defineResource, type Kubecast, type KubeObject } from '@kubecast/sdk';
import * as react from '@kubecast/sdk/react';
import * as solid from '@kubecast/sdk/solid';
import * as svelte from '@kubecast/sdk/svelte';
import * as vue from '@kubecast/sdk/vue';
import { MockGateway, MockPast } from '../../mock/index.ts';
import '../../mock/setup.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

interface Growing {
  readonly status: string;
  readonly hasNextPage: boolean;
  readonly isFetchingNextPage: boolean;
  readonly nextPageError: { readonly reason: string } | undefined;
  readonly fetchNextPage: () => void;
}
interface Both {
  readonly list: Growing & { readonly data: readonly KubeObject[] };
  readonly past: Growing & { readonly data: readonly { readonly name: string }[] };
}
interface Mounted {
  readonly ask: (namespace: string) => void;
  readonly now: () => Both;
  readonly end: () => void;
}

const never = (): never => {
  throw new Error('nothing was rendered');
};

const frameworks: Record<string, (kc: Kubecast) => Mounted> = {
  react: (client) => {
    let now: () => Both = never;
    const Part = ({ namespace }: { namespace: string }): null => {
      const both = { list: react.useInfiniteList(jobs, { namespace, limit: 2 }), past: react.useHistory(jobs, { namespace, limit: 2 }) };
      now = () => both;
      return null;
    };
    const root = reactRoot(document.createElement('div'));
    const ask = (namespace: string): void => act(() => root.render(createElement(react.KubecastProvider, { client }, createElement(Part, { namespace }))));
    ask('team-a');
    return { ask, now: () => now(), end: () => act(() => root.unmount()) };
  },
  vue: (kc) => {
    const namespace: Ref<string> = shallowRef('team-a');
    let now: () => Both = never;
    const app = createApp({
      setup: () => {
        const list = vue.useInfiniteList(jobs, () => ({ namespace: namespace.value, limit: 2 }));
        const past = vue.useHistory(jobs, () => ({ namespace: namespace.value, limit: 2 }));
        now = () => ({ list: list.value, past: past.value });
        return () => null;
      },
    }).use(vue.kubecast(kc));
    app.mount(document.createElement('div'));
    return { ask: (next) => void (namespace.value = next), now: () => now(), end: () => app.unmount() };
  },
  svelte: (kc) => {
    const lists = svelte.infiniteList(jobs, kc);
    let list: Both['list'] | undefined;
    let past: Both['past'] | undefined;
    const show = (namespace: string): (() => void)[] => [
      lists({ namespace, limit: 2 }).subscribe((value) => (list = value)),
      svelte.history(jobs, { namespace, limit: 2 }, kc).subscribe((value) => (past = value)),
    ];
    let ends = show('team-a');
    const ask = (namespace: string): void => {
      const before = ends;
      ends = show(namespace);
      before.forEach((end) => end());
    };
    return { ask, now: () => ({ list, past }) as Both, end: () => ends.forEach((end) => end()) };
  },
  solid: (value) => {
    const [namespace, ask] = createSignal('team-a');
    let now: () => Both = never;
    const end = createRoot((dispose) => {
      const Part = (): null => {
        const list = solid.createInfiniteList(jobs, () => ({ namespace: namespace(), limit: 2 }));
        const past = solid.createHistory(jobs, () => ({ namespace: namespace(), limit: 2 }));
        createRenderEffect(() => {
          const both = { list: list(), past: past() };
          now = () => both;
        });
        return null;
      };
      createComponent(solid.KubecastContext.Provider, {
        value,
        get children() {
          return createComponent(Part, {});
        },
      });
      return dispose;
    });
    return { ask, now: () => now(), end };
  },
};

let gateway: MockGateway;
let kc: Kubecast;
beforeEach(() => {
  gateway = new MockGateway();
  const past = (gateway.past = new MockPast());
  for (const namespace of ['team-a', 'team-b']) {
    for (let n = 1; n <= 5; n++) {
      gateway.cluster.put('jobs', { metadata: { name: `${namespace}-${n}`, namespace } });
      past.record(`${namespace}-${n}`, 'Running', { namespace, at: new Date(n * 1_000_000).toISOString() });
    }
  }
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch });
});
afterEach(() => {
  kc.close();
  gateway.cutAll();
});

const namesOf = ({ list, past }: Both): string => `${list.status} ${list.data.map(({ metadata }) => metadata.name).join()} ${past.status} ${past.data.map(({ name }) => name).join()}`;

test.each(Object.entries(frameworks))('in %s', async (_, mount) => {
  const { ask, now, end } = mount(kc);
  const come = (what: () => void) =>
    vi.waitFor(async () => {
      await act(() => Promise.resolve());
      what();
    }, 20_000);
  const shows = (text: string) => come(() => expect(namesOf(now())).toBe(text));
  const more = (): void => act(() => [now().list, now().past].forEach(({ fetchNextPage }) => fetchNextPage()));
  await shows('live team-a-1,team-a-2 live team-a-5,team-a-4');
  expect(now()).toMatchObject({ list: { hasNextPage: true }, past: { hasNextPage: true } });
  more();
  await shows('live team-a-1,team-a-2,team-a-3,team-a-4 live team-a-5,team-a-4,team-a-3,team-a-2');
  gateway.cluster.put('jobs', { metadata: { name: 'team-a-0', namespace: 'team-a' } });
  gateway.past?.record('team-a-9', 'Submitted', { at: new Date(9_000_000).toISOString() });
  await shows('live team-a-0,team-a-1,team-a-2,team-a-3 live team-a-9,team-a-5,team-a-4,team-a-3');
  more();
  ask('team-b'); // while a page is under way
  await shows('live team-b-1,team-b-2 live team-b-5,team-b-4');
  more();
  await shows('live team-b-1,team-b-2,team-b-3,team-b-4 live team-b-5,team-b-4,team-b-3,team-b-2');
  const calm = gateway.fault.tooMany();
  more();
  await come(() => expect(now().past).toMatchObject({ isFetchingNextPage: true, nextPageError: { reason: 'http:429' } }));
  expect(now().list).toMatchObject({ isFetchingNextPage: true, data: [{}, {}, {}, {}] });
  expect(now().past.data).toHaveLength(4);
  calm();
  kc.wake();
  await shows('live team-b-1,team-b-2,team-b-3,team-b-4,team-b-5 live team-b-5,team-b-4,team-b-3,team-b-2,team-b-1');
  expect(now()).toMatchObject({ list: { hasNextPage: false, isFetchingNextPage: false, nextPageError: undefined }, past: { hasNextPage: false, isFetchingNextPage: false, nextPageError: undefined } });
  end();
}, 120_000);

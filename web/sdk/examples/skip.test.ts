// @vitest-environment happy-dom
// What is told to ask for nothing asks for nothing, in four frameworks and for every hook of them. What begins to ask, or ceases to: random.test.ts.
import { act, createElement } from 'react';
import { createRoot as reactRoot } from 'react-dom/client';
import { createComponent, createRoot } from 'solid-js';
import { get } from 'svelte/store';
import { afterEach, beforeEach, expect, expectTypeOf, test } from 'vitest';
import { createApp, h, shallowRef, type Ref } from 'vue';
import { createKubecast, defineResource, logs, queue, type Kubecast, type KubeObject } from '@kubecast/sdk';
import * as react from '@kubecast/sdk/react';
import * as solid from '@kubecast/sdk/solid';
import * as svelte from '@kubecast/sdk/svelte';
import * as vue from '@kubecast/sdk/vue';
import { MockGateway } from '../../mock/index.ts';
import '../../mock/setup.ts';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

type What = 'skip' | { readonly namespace: string };

let gateway: MockGateway;
let kc: Kubecast;
beforeEach(() => {
  gateway = new MockGateway();
  for (const namespace of ['team-a', 'team-b']) gateway.cluster.put('jobs', { metadata: { name: `of-${namespace}`, namespace } });
  kc = createKubecast({ token: () => 'let-me-in', fetch: gateway.fetch, linger: 1 });
});
afterEach(() => kc.close());

const pause = (): Promise<void> => act(() => new Promise<void>((resolve) => setTimeout(resolve, 5)));

async function until(what: () => unknown, expected: unknown): Promise<void> {
  const end = performance.now() + 60_000;
  while (JSON.stringify(what()) !== JSON.stringify(expected) && performance.now() < end) await pause();
  expect(what()).toEqual(expected);
}

const object = { namespace: 'team-a', name: 'train' } as const;

/** Calls each hook of a framework where it may be called. */
const hooks: Record<string, (kc: Kubecast) => readonly { readonly status: string }[]> = {
  react: (client) => {
    let all: readonly { readonly status: string }[] = [];
    const Part = (): null => {
      all = [
        ...[react.useWatch(jobs, 'skip'), react.useCount(jobs, ['metadata.name'], 'skip'), react.useMe('skip'), react.useAccess(jobs, 'skip'), react.useQueues('skip')],
        ...[react.useObject(jobs, 'skip'), react.useFollow('skip'), react.useLivePage(jobs, 'skip'), react.useLogs(jobs, 'skip'), react.useHistory(jobs, 'skip')],
        ...[react.useObject(jobs, undefined), react.useFollow(undefined), react.useLivePage(jobs, undefined), react.useLogs(jobs, undefined), react.useHistory(jobs, undefined)],
        ...[react.useInfiniteList(jobs, 'skip'), react.useInfiniteList(jobs, undefined), react.useTransitions(jobs, 'skip'), react.useTransitions(jobs, undefined)],
        ...[react.useQueue('team-a', 'gpu', 'skip'), react.useQueue('team-a', undefined), react.useQueue(undefined, 'gpu'), react.useNotifications('skip')],
      ];
      return null;
    };
    const root = reactRoot(document.createElement('div'));
    act(() => root.render(createElement(react.KubecastProvider, { client }, createElement(Part))));
    return all;
  },
  vue: (kc) => {
    let all: readonly Readonly<Ref<{ readonly status: string }>>[] = [];
    const setup = () => {
      all = [
        ...[vue.useWatch(jobs, 'skip'), vue.useCount(jobs, ['metadata.name'], 'skip'), vue.useMe('skip'), vue.useAccess(jobs, 'skip'), vue.useQueues('skip')],
        ...[vue.useObject(jobs, 'skip'), vue.useFollow('skip'), vue.useLivePage(jobs, 'skip'), vue.useLogs(jobs, 'skip'), vue.useHistory(jobs, 'skip')],
        ...[vue.useObject(jobs, undefined), vue.useFollow(undefined), vue.useLivePage(jobs, undefined), vue.useLogs(jobs, undefined), vue.useHistory(jobs, undefined)],
        ...[vue.useInfiniteList(jobs, 'skip'), vue.useInfiniteList(jobs, undefined), vue.useTransitions(jobs, 'skip'), vue.useTransitions(jobs, undefined)],
        ...[vue.useQueue('team-a', 'gpu', 'skip'), vue.useQueue('team-a', undefined), vue.useQueue(undefined, 'gpu'), vue.useNotifications('skip')],
      ];
      return () => null;
    };
    createApp({ setup }).use(vue.kubecast(kc)).mount(document.createElement('div'));
    return all.map(({ value }) => value);
  },
  svelte: (kc) =>
    [
      ...[svelte.watch(jobs, 'skip', kc), svelte.count(jobs, ['metadata.name'], 'skip', kc), svelte.me('skip', kc), svelte.access(jobs, 'skip', kc), svelte.queues('skip', kc)],
      ...[svelte.object(jobs, 'skip', kc), svelte.follow('skip', kc), svelte.livePage(jobs, kc)('skip'), svelte.logs(jobs, 'skip', kc), svelte.history(jobs, 'skip', kc)],
      ...[svelte.object(jobs, undefined, kc), svelte.follow(undefined, kc), svelte.livePage(jobs, kc)(undefined), svelte.logs(jobs, undefined, kc), svelte.history(jobs, undefined, kc)],
      ...[svelte.infiniteList(jobs, kc)('skip'), svelte.infiniteList(jobs, kc)(undefined), svelte.transitions(jobs, 'skip', kc), svelte.transitions(jobs, undefined, kc)],
      ...[svelte.queue('team-a', 'gpu', 'skip', kc), svelte.queue('team-a', undefined, undefined, kc), svelte.queue(undefined, 'gpu', undefined, kc), svelte.notifications('skip', kc)],
    ].map((store) => get<{ readonly status: string }>(store)),
  solid: (value) => {
    let all: readonly { readonly status: string }[] = [];
    const skip = (): 'skip' => 'skip';
    const none = (): undefined => undefined;
    const Part = (): null => {
      all = [
        ...[solid.createWatch(jobs, skip), solid.createCount(jobs, ['metadata.name'], skip), solid.createMe(skip), solid.createAccess(jobs, skip), solid.createQueues(skip)],
        ...[solid.createObject(jobs, skip), solid.createFollow(skip), solid.createLivePage(jobs, skip), solid.createLogs(jobs, skip), solid.createHistory(jobs, skip)],
        ...[solid.createObject(jobs, none), solid.createFollow(none), solid.createLivePage(jobs, none), solid.createLogs(jobs, none), solid.createHistory(jobs, none)],
        ...[solid.createInfiniteList(jobs, skip), solid.createInfiniteList(jobs, none), solid.createTransitions(jobs, skip), solid.createTransitions(jobs, none)],
        ...[solid.createQueue(() => 'team-a', () => 'gpu', skip), solid.createQueue(() => 'team-a', none), solid.createQueue(none, () => 'gpu'), solid.createNotifications(skip)],
      ].map((accessor: () => { readonly status: string }) => accessor());
      return null;
    };
    createRoot(() =>
      createComponent(solid.KubecastContext.Provider, {
        value,
        get children() {
          return createComponent(Part, {});
        },
      }),
    );
    return all;
  },
};

test.each(Object.entries(hooks))('each hook of %s can be told to ask for nothing', async (_, all) => {
  const shown = all(kc);
  expect(shown.map(({ status }) => status)).toEqual(shown.map(() => 'idle'));
  expect(shown).toHaveLength(23);
  await pause();
  expect(gateway.requests).toEqual([]);
  expect(kc.connection.getSnapshot()).toBeUndefined();
});

test('a name that is empty is said, and no other object is shown', () => {
  const words = /the name is empty; until it is known, ask for 'skip'/;
  for (const name of ['', undefined as unknown as string]) {
    expect(() => svelte.object(jobs, { ...object, name }, kc)).toThrow(words);
  }
  expect(() => kc.watch(jobs, { ...object, name: '' })).toThrow(words);
  expect(() => logs(jobs, { ...object, name: '' })).toThrow(words);
  expect(() => queue('team-a', '')).toThrow(words);
  expect(gateway.requests).toEqual([]);
});

test('in Vue, once a name is empty, the object before is not shown as live by an error handler that goes on', async () => {
  const at = document.createElement('div');
  const name = shallowRef('of-team-a');
  const app = createApp({
    setup: () => {
      const now = vue.useObject(jobs, () => ({ namespace: 'team-a', name: name.value }));
      return () => h('p', `${now.value.status} ${now.value.data?.metadata.name}`);
    },
  }).use(vue.kubecast(kc));
  const errors: unknown[] = [];
  app.config.errorHandler = (error) => void errors.push(error);
  app.mount(at);
  await until(() => at.textContent, 'live of-team-a');
  name.value = '';
  await until(() => at.textContent, 'idle undefined');
  expect(String(errors)).toMatch(/^Error: the name is empty/);
  name.value = 'of-team-a';
  await until(() => at.textContent, 'live of-team-a');
  expect(errors).toHaveLength(1);
  app.unmount();
});

test('types say where a status may be idle', () => {
  const maybe = (ok: boolean): What => (ok ? object : 'skip');
  // They are not called: a hook would want a component.
  const types = {
    watch: () => react.useWatch(jobs, { namespace: 'team-a' }),
    some: () => react.useWatch(jobs, maybe(true)),
    vue: () => vue.useWatch(jobs, () => maybe(true)),
    none: () => vue.useObject(jobs, () => object),
  };
  expect(Object.values(types)).toHaveLength(4);
  type Status<K extends keyof typeof types> = ReturnType<(typeof types)[K]> extends infer S ? (S extends { readonly value: { readonly status: infer V } } ? V : S extends { readonly status: infer V } ? V : never) : never;
  expectTypeOf<'idle' extends Status<'watch'> ? true : false>().toEqualTypeOf<false>();
  expectTypeOf<'idle' extends Status<'some'> ? true : false>().toEqualTypeOf<true>();
  expectTypeOf<'idle' extends Status<'vue'> ? true : false>().toEqualTypeOf<true>();
  expectTypeOf<'idle' extends Status<'none'> ? true : false>().toEqualTypeOf<false>();
});

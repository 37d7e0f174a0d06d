// A component of each framework that shows a watch and an object, and is told again and again what to ask for.

import { act, createElement } from 'react';
import { createRoot as reactRoot } from 'react-dom/client';
import { createComponent, createRenderEffect, createRoot, createSignal } from 'solid-js';
import { createApp, h, shallowRef } from 'vue';
import { defineResource, type Kubecast, type KubeObject } from '@kubecast/sdk';
import * as react from '@kubecast/sdk/react';
import * as solid from '@kubecast/sdk/solid';
import * as svelte from '@kubecast/sdk/svelte';
import * as vue from '@kubecast/sdk/vue';

export const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

export interface Ask {
  readonly rows: 'skip' | { readonly namespace?: string; readonly labels?: string };
  readonly object: 'skip' | undefined | { readonly namespace: string; readonly name: string };
}
export interface Said<D> {
  readonly status: string;
  readonly data: D;
}
export interface Shown {
  readonly rows: Said<readonly KubeObject[]>;
  readonly object: Said<KubeObject | undefined>;
}

export interface Mounted {
  readonly ask: (what: Ask) => void;
  /** What is on the screen. */
  readonly shown: () => Shown;
  readonly end: () => void;
}

const text = (rows: Said<readonly unknown[]>, object: Said<unknown>): string =>
  JSON.stringify({ rows: { status: rows.status, data: rows.data }, object: { status: object.status, data: object.data } });
const parsed = (at: Element) => (): Shown => JSON.parse(at.textContent) as Shown;

export const frameworks: Record<string, (kc: Kubecast, first: Ask) => Mounted> = {
  react: (client, first) => {
    const at = document.createElement('div');
    const root = reactRoot(at);
    const Part = ({ what }: { what: Ask }) => text(react.useWatch(jobs, what.rows), react.useObject(jobs, what.object));
    const ask = (what: Ask): void => act(() => root.render(createElement(react.KubecastProvider, { client }, createElement(Part, { what }))));
    ask(first);
    return { ask, shown: parsed(at), end: () => act(() => root.unmount()) };
  },
  vue: (kc, first) => {
    const at = document.createElement('div');
    const what = shallowRef(first);
    const app = createApp({
      setup: () => {
        const rows = vue.useWatch(jobs, () => what.value.rows);
        const object = vue.useObject(jobs, () => what.value.object);
        return () => h('p', text(rows.value, object.value));
      },
    }).use(vue.kubecast(kc));
    app.mount(at);
    return { ask: (next) => void (what.value = next), shown: parsed(at), end: () => app.unmount() };
  },
  svelte: (kc, first) => {
    const now: { rows?: Shown['rows']; object?: Shown['object'] } = {};
    // As a component has it that derives stores from what it is given.
    const show = (what: Ask): (() => void)[] => [
      svelte.watch(jobs, what.rows, kc).subscribe((value) => (now.rows = value)),
      svelte.object(jobs, what.object, kc).subscribe((value) => (now.object = value)),
    ];
    let leave = show(first);
    const end = (): void => leave.forEach((one) => one());
    const ask = (what: Ask): void => {
      end();
      leave = show(what);
    };
    return { ask, shown: () => now as Shown, end };
  },
  solid: (value, first) => {
    const [what, ask] = createSignal(first);
    let now!: Shown;
    const end = createRoot((dispose) => {
      const Part = (): null => {
        const rows = solid.createWatch(jobs, () => what().rows);
        const object = solid.createObject(jobs, () => what().object);
        createRenderEffect(() => (now = { rows: rows(), object: object() }));
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
    return { ask, shown: () => now, end };
  },
};

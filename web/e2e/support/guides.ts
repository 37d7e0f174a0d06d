// What the guides tell people to write, as pages of the gateway's own origin: each block is a part of one bundle, and is begun where a test says.

import { fileURLToPath } from 'node:url';
import type { BrowserContext, Page } from 'playwright-core';
import { build } from 'vite';
import { components } from '../../sdk/examples/compile.ts';
import { guides } from '../../sdk/examples/guides.ts';

const web = fileURLToPath(new URL('../..', import.meta.url));

// `acts` is what a page can be told to do, and `told` what each stream has said.
const entry = `
import { createElement } from 'react';
import { createRoot } from 'react-dom/client';
import { createKubecast } from '@kubecast/sdk';
import { keepOffline } from '@kubecast/sdk/offline';
import { KubecastProvider } from '@kubecast/sdk/react';

const said = new URLSearchParams(location.hash.slice(1));
for (const [name, value] of said) sessionStorage.setItem(name, value);
const told = (window.told = []);
const direct = window.fetch.bind(window);
window.fetch = async (input, init) => {
  const response = await direct(input, init);
  if (!String(input).includes('/stream?') || !response.body) return response;
  const stream = { from: new Headers(init?.headers).get('Last-Event-ID') ?? '', events: [] };
  told.push(stream);
  const [own, theirs] = response.body.tee();
  void read(own.pipeThrough(new TextDecoderStream()), stream.events).catch(() => undefined);
  return new Response(theirs, response);
};
const read = async (texts, events) => {
  let rest = '';
  for await (const text of texts) {
    const lines = (rest + text).split('\\n');
    rest = lines.pop();
    for (const line of lines) if (line.startsWith('event: ')) events.push(line.slice('event: '.length));
  }
};
const token = () => sessionStorage.getItem('token') ?? undefined;
const root = () => createRoot(document.getElementById('app'));
const show = (client, ...parts) => root().render(createElement(KubecastProvider, { client }, ...parts.map((part) => createElement(part, { team: 'team-a' }))));
const used = {};
window.acts = {
  query: async () => {
    const [{ QueryClient, QueryClientProvider }, { Jobs }] = await Promise.all([import('@tanstack/react-query'), import('guide:tanstack-query/Jobs.tsx')]);
    root().render(createElement(QueryClientProvider, { client: new QueryClient() }, createElement(Jobs, { kc: createKubecast({ token }), team: 'team-a' })));
  },
  vue: () => void import('guide:vue/main.ts'),
  svelte: () => void import('guide:svelte/main.ts'),
  solid: () => void import('guide:solid/main.tsx'),

  signIn: async () => {
    const [{ signIn }, { Who }] = await Promise.all([import('guide:sign-in/session.ts'), import('guide:sign-in/Who.tsx')]);
    used.kc = await signIn();
    if (used.kc) show(used.kc, Who);
  },
  signOut: async () => (await import('guide:sign-in/session.ts')).signOut(used.kc),
  pasted: async (bearer) => {
    const { signIn } = await import('guide:readme/pasted.ts');
    used.kc = await signIn(bearer);
    return used.kc !== undefined;
  },
  exchange: async (bearer) => (await import('guide:sign-in/exchange.ts')).exchange(bearer),
  tokens: async ([first, next]) => {
    const { connect } = await import('guide:sign-in/token.ts');
    const parts = await Promise.all([import('guide:sign-in/Who.tsx'), import('guide:errors/Connection.tsx'), import('guide:errors/Jobs.tsx'), import('guide:testing/Jobs.tsx')]);
    used.token = first;
    used.renewed = () => next;
    show(connect('', { current: async () => used.token, renew: async () => (used.token = used.renewed()) }), parts[0].Who, parts[1].Connection, parts[2].Jobs, parts[3].Jobs);
  },
  endTokens: () => {
    used.token = 'not.a.token';
    used.renewed = () => undefined;
  },

  tabs: async () => {
    const [tab, { Jobs }] = await Promise.all([import('guide:tabs/kc.ts'), import('guide:errors/Jobs.tsx')]);
    used.leave = tab.leave;
    show(tab.kc, Jobs);
  },
  leave: () => used.leave(),

  hydrate: () => void import('guide:ssr/client.tsx'),
  next: async (props) => root().render(createElement((await import('guide:ssr/app/Live.tsx')).Live, props)),

  // As the guide says; or, where a test says when it writes, without its few lines.
  open: async (byHand) => {
    const [{ open }, { jobs }] = await Promise.all([import('guide:offline/open.ts'), import('guide:errors/kubernetes.ts')]);
    const kc = byHand ? createKubecast({ token }) : undefined;
    Object.assign(used, kc ? { kc, offline: await keepOffline(kc, { user: 'mara' }) } : await open('mara', token));
    used.watch = used.kc.watch(jobs, { namespace: 'team-a' });
    used.watch.subscribe(() => undefined);
  },
  state: () => {
    const { status, asOf, data } = used.watch.getSnapshot();
    return { status, asOf: typeof asOf, rows: data.map(({ metadata }) => metadata.name).sort() };
  },
  // As when another tab is looked at.
  hide: () => {
    Object.defineProperty(document, 'visibilityState', { value: 'hidden', configurable: true });
    document.dispatchEvent(new Event('visibilitychange'));
    return used.offline?.save();
  },
  save: () => used.offline.save(),
  writer: () =>
    new Promise((resolve, reject) => {
      const opening = indexedDB.open('kubecast', 1);
      opening.onerror = reject;
      opening.onsuccess = () => {
        const asked = opening.result.transaction('heads').objectStore('heads').getAll();
        asked.onsuccess = () => {
          opening.result.close();
          resolve(asked.result[0]?.writer ?? '');
        };
      };
    }),
  forget: () => used.signOut(),
  told: () => told,
};
`;

const html = '<!doctype html><title>A guide</title><div id="app"></div><script type="module" src="/guide/entry.js"></script>';

/** Has the pages of a context find the bundle below `/guide/`. */
export async function guidesBundle(): Promise<(context: BrowserContext) => Promise<void>> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    root: web,
    base: '/guide/',
    define: { __VUE_OPTIONS_API__: false, __VUE_PROD_DEVTOOLS__: false, __VUE_PROD_HYDRATION_MISMATCH_DETAILS__: false },
    build: { write: false, rolldownOptions: { input: { entry: 'guide-entry' }, output: { entryFileNames: '[name].js', chunkFileNames: '[name]-[hash].js' } } },
    plugins: [guides(), components(), { name: 'entry', resolveId: (id) => (id === 'guide-entry' ? id : null), load: (id) => (id === 'guide-entry' ? entry : null) }],
  });
  const files = new Map((built as { output: { fileName: string; code?: string }[] }).output.map(({ fileName, code }) => [fileName, code ?? '']));
  return async (context) => {
    await context.route('**/guide/**', (route) => {
      const name = new URL(route.request().url()).pathname.slice('/guide/'.length);
      const code = files.get(name);
      return name === '' ? route.fulfill({ contentType: 'text/html', body: html }) : code === undefined ? route.abort() : route.fulfill({ contentType: 'text/javascript', body: code });
    });
  };
}

/** Opens the bundle's page, which keeps what its fragment says. */
export async function openGuide(page: Page, url: string, fragment = ''): Promise<void> {
  await page.goto(`${url}/guide/${fragment}`);
  await page.waitForFunction(() => 'acts' in window);
}

/** Has such a page do something that is named above. */
export const act = (page: Page, name: string, given?: unknown): Promise<unknown> =>
  page.evaluate(([name, given]) => (window as unknown as { acts: Record<string, (given: unknown) => unknown> }).acts[name as string]?.(given), [name, given]);

/** What is on screen, in one line. */
export const shownIn = (page: Page): Promise<string> => page.evaluate(() => (document.body.textContent ?? '').replace(/\s+/g, ' ').trim());

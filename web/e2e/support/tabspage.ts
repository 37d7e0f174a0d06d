// A page of its own, for tests of the SDK in browsers: it follows config maps, and keeps what it is told where a test finds it.

import { fileURLToPath } from 'node:url';
import { build } from 'vite';

export const namespace = 'team-vision';

/** What a page says of itself. */
export interface Told {
  readonly status: string;
  readonly rows: readonly string[];
  /** How many streams it has open itself. */
  readonly streams: number;
}

// `#attend` lets go of the stream while nobody looks.
const script = `
import { attend, createKubecast, defineResource } from '@kubecast/sdk';
import { tabs } from '@kubecast/sdk/tabs';
const said = new URLSearchParams(location.hash.slice(1));
let streams = 0;
const counted = (input, init) => {
  if (String(input).includes('/stream?')) {
    streams++;
    init.signal.addEventListener('abort', () => streams--);
  }
  return fetch(input, init);
};
const kc = createKubecast({ token: () => said.get('token'), share: tabs(), fetch: counted });
const watch = kc.watch(defineResource()({ version: 'v1', plural: 'configmaps' }), { namespace: '${namespace}', labels: 'of=tabs' });
window.told = () => {
  const { data, status } = watch.getSnapshot();
  return { status, streams, rows: data.map(({ metadata, data }) => metadata.name + ' ' + data.n).sort() };
};
watch.subscribe(() => window.onTold?.(window.told()));
if (said.has('attend')) attend(kc);
`;

/** As one module, with the SDK in it. */
async function bundled(source: string): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('../..', import.meta.url)),
    build: { write: false, rolldownOptions: { input: 'tabs-page' } },
    plugins: [{ name: 'page', resolveId: (id) => (id === 'tabs-page' ? id : null), load: (id) => (id === 'tabs-page' ? source : null) }],
  });
  return (built as { output: { code: string }[] }).output[0]?.code ?? '';
}

/** The whole of it, as HTML. The fragment of its address has the token. */
export async function tabsPage(): Promise<string> {
  return `<!doctype html><title>Tabs</title><script type="module">${await bundled(script)}</script>`;
}

/** A service worker that follows config maps in place of the pages, and tells them. */
export const serviceWorker = (): Promise<string> =>
  bundled(`
import { createKubecast, defineResource } from '@kubecast/sdk';
const kc = createKubecast({ token: () => 'let-me-in' });
const watch = kc.watch(defineResource()({ version: 'v1', plural: 'configmaps' }), { namespace: '${namespace}' });
const tell = async () => {
  const { status, data } = watch.getSnapshot();
  for (const page of await clients.matchAll({ includeUncontrolled: true })) page.postMessage([status, ...data.map(({ metadata }) => metadata.name)].join());
};
watch.subscribe(tell);
addEventListener('message', tell);
addEventListener('activate', (event) => event.waitUntil(clients.claim()));
`);

/** Asks it, and keeps it running: what nobody asks anything for half a minute Chromium ends. */
export const workersPage = `<!doctype html><title>Worker</title><script type="module">
const { serviceWorker } = navigator;
serviceWorker.addEventListener('message', ({ data }) => (window.told = data));
await serviceWorker.register('/worker.js', { type: 'module' });
const { active } = await serviceWorker.ready;
active.postMessage('here');
setInterval(() => active.postMessage('still here'), 20_000);
</script>`;

/** The one config map that they follow, as it shall be. */
export const configMap = (n: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counted', namespace, labels: { of: 'tabs' } }, data: { n } });

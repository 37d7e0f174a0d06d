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

/** The whole of it, as HTML. The fragment of its address has the token. */
export async function tabsPage(): Promise<string> {
  const built = await build({
    configFile: false,
    logLevel: 'error',
    root: fileURLToPath(new URL('../..', import.meta.url)),
    build: { write: false, rolldownOptions: { input: 'tabs-page' } },
    plugins: [{ name: 'page', resolveId: (id) => (id === 'tabs-page' ? id : null), load: (id) => (id === 'tabs-page' ? script : null) }],
  });
  const code = (built as { output: { code: string }[] }).output[0]?.code ?? '';
  return `<!doctype html><title>Tabs</title><script type="module">${code}</script>`;
}

/** The one config map that they follow, as it shall be. */
export const configMap = (n: string): string =>
  JSON.stringify({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name: 'counted', namespace, labels: { of: 'tabs' } }, data: { n } });

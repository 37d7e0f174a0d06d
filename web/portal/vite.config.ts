import { defaultClientConditions, defineConfig, type ProxyOptions } from 'vite';
import { mockPlugin } from '../mock/plugin.ts';
import { begin } from './begin.ts';
import { codings } from './codings.ts';
import { preact } from './preact.ts';

// `npm run dev` talks to a gateway at KUBECAST_GATEWAY; `npm run dev -- --mode mock` needs none.
const gateway = process.env.KUBECAST_GATEWAY ?? 'http://127.0.0.1:8080';

const served = ['/stream', '/api', '/apis', '/auth', '/history', '/logs', '/queues', '/notifications', '/clusters', '/openapi', '/version'];

/** A stream that breaks at the gateway breaks in the page, too: by itself the proxy would leave it open, and the page would believe it. */
const breaks: ProxyOptions['configure'] = (proxy) =>
  proxy.on('proxyRes', (from, _, to) => {
    from.once('close', () => from.complete || to.destroy());
  });

/** Just what is asked of a module. */
interface Modules {
  readonly getModuleInfo: (id: string) => { readonly isEntry: boolean; readonly importers: readonly string[]; readonly dynamicImporters: readonly string[] } | null;
}

/** What shows a table of jobs or of pods, in either form. */
const tables = /\/src\/(jobs\/JobsPage|pods\/PodsPage|virtual\/Tables)\.tsx$/;
/** What is looked at first, most of the time, and has no such table. */
const starts = /\/src\/(home\/HomePage|overview\/OverviewPage|inbox\/InboxPanel)\.tsx$/;

/**
 * The file for a module. The first load needs `first`. A table needs `listing`, which other lists and pages need, too, and `shared`, which the start pages
 * need and which has the styles of both. Without these groups a table is cut into forty small files. They compress worse, and a browser asks for six at a
 * time over HTTP/1.1.
 */
function fileOf(id: string, modules: Modules): string | undefined {
  const importers = new Set([id]);
  const loaded: string[] = []; // what is reached by `import()` and needs the module
  for (const one of importers) {
    const info = modules.getModuleInfo(one);
    if (info?.isEntry) return 'first';
    if (info?.dynamicImporters.length) loaded.push(one);
    for (const importer of info?.importers ?? []) importers.add(importer);
  }
  if (!loaded.some((one) => tables.test(one))) return undefined;
  return id.endsWith('.css') || loaded.some((one) => starts.test(one)) ? 'shared' : 'listing';
}

/** A group takes along what its modules import, so those come first that others import. */
const groups = ['listing', 'shared', 'first'].map((file, n) => ({
  debugName: file,
  name: (id: string, modules: Modules) => (fileOf(id, modules) === file ? file : undefined),
  priority: n + 1,
}));

export default defineConfig(({ mode }) => ({
  base: './', // the gateway may stand below a path
  plugins: [begin(), codings(), ...(mode === 'mock' ? [mockPlugin()] : [])],
  // The SDK's sources rather than its build: no build step between a change there and here.
  resolve: { conditions: ['kubecast-source', ...defaultClientConditions], alias: preact },
  server: mode === 'mock' ? {} : { proxy: Object.fromEntries(served.map((path) => [path, { target: gateway, configure: breaks }])) },
  build: {
    target: 'es2022',
    // The gateway's content security policy allows no data: URLs and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups } } },
  },
}));

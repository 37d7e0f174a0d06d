import { defaultClientConditions, defineConfig, type ProxyOptions } from 'vite';
import { mockPlugin } from '../mock/plugin.ts';
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
  readonly getModuleInfo: (id: string) => { readonly isEntry: boolean; readonly importers: readonly string[] } | null;
}

/**
 * Puts whatever an entry reaches by imports that are no `import()` into one file. What pages share is cut into many small ones otherwise, which
 * compress worse, and of which the first load needs a dozen.
 */
function firstLoad(id: string, modules: Modules): string | undefined {
  const importers = new Set([id]);
  for (const one of importers) {
    const info = modules.getModuleInfo(one);
    if (info?.isEntry) return 'first';
    for (const importer of info?.importers ?? []) importers.add(importer);
  }
  return undefined;
}

export default defineConfig(({ mode }) => ({
  base: './', // the gateway may stand below a path
  plugins: [codings(), ...(mode === 'mock' ? [mockPlugin()] : [])],
  // The SDK's sources rather than its build: no build step between a change there and here.
  resolve: { conditions: ['kubecast-source', ...defaultClientConditions], alias: preact },
  server: mode === 'mock' ? {} : { proxy: Object.fromEntries(served.map((path) => [path, { target: gateway, configure: breaks }])) },
  build: {
    target: 'es2022',
    // The gateway's content security policy allows no data: URLs and no inline script.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    reportCompressedSize: false,
    rolldownOptions: { output: { codeSplitting: { groups: [{ name: firstLoad }] } } },
  },
}));

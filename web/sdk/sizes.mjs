// Tells what the SDK costs a page: bundled, minified, gzipped. Fails if that is more than is promised.

import { gzipSync } from 'node:zlib';
import { build } from 'vite';

const promised = [
  { name: 'core', code: "export { createKubecast, defineResource } from './dist/index.js'", most: 8_192 },
  { name: 'core with sessions', code: "export { createKubecast, defineResource, Session } from './dist/index.js'", most: 9_216 },
  { name: 'logs and histories, beside the core', code: "export { logs, transitions } from './dist/index.js'", most: 1_600 },
  { name: 'notifications, beside the core', code: "export { inboxOf } from './dist/index.js'", most: 2_048 },
  { name: 'react', code: "export { KubecastProvider, useConnection, useFollow, useKubecast, useWatch } from './dist/react.js'", most: 1_536 },
  { name: 'vue', code: "export { kubecast, useConnection, useFollow, useKubecast, useWatch } from './dist/vue.js'", most: 1_536 },
  { name: 'svelte', code: "export { connection, followed, getKubecast, setKubecast, watch } from './dist/svelte.js'", most: 1_536 },
  { name: 'solid', code: "export { createConnection, createFollow, createWatch, KubecastContext, useKubecast } from './dist/solid.js'", most: 1_536 },
];

for (const { name, code, most } of promised) {
  const entry = { name: 'entry', resolveId: (id) => (id === 'entry' ? new URL('entry.js', import.meta.url).pathname : null), load: (id) => (id.endsWith('/entry.js') ? code : null) };
  const rollupOptions = { input: 'entry', external: [/^(react|vue|svelte|solid-js)(\/|$)/], preserveEntrySignatures: 'strict' };
  const output = await build({ configFile: false, logLevel: 'error', plugins: [entry], build: { write: false, target: 'es2022', rollupOptions } });
  const bytes = gzipSync([output].flat().flatMap((one) => one.output.map((part) => part.code ?? '')).join('')).length;
  console.log(`${name}: ${bytes} bytes gzipped, of ${most}`);
  if (bytes > most) process.exitCode = 1;
}

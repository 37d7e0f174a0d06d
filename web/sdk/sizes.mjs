// Tells what the SDK costs a page: bundled, minified, gzipped. Fails if that is more than is promised, less a tenth for what is to come: a
// promise that is full forbids to mend something.

import { gzipSync } from 'node:zlib';
import { build } from 'vite';

// What the core has, whatever else a page has.
const core = /\/(circumstances|collection|deadline|listeners|lost|mergepatch|object|resource)\.js$/;

const promised = [
  { name: 'core', code: "export { createKubecast, defineResource } from './dist/index.js'", most: 9_216 },
  { name: 'core with sessions', code: "export { createKubecast, defineResource, Session } from './dist/index.js'", most: 10_240 },
  { name: 'logs and histories, beside the core', code: "export { logs, transitions } from './dist/index.js'", most: 1_792, beside: core },
  { name: 'notifications, beside the core', code: "export { inboxOf } from './dist/index.js'", most: 2_176, beside: core },
  { name: 'live pages and counts, beside the core', code: "export { page, counts } from './dist/index.js'", most: 1_792, beside: core },
  { name: 'live lists that grow, beside the core', code: "export { infiniteListOf } from './dist/index.js'", most: 2_560, beside: core },
  { name: 'histories that grow, beside the core', code: "export { pastOf } from './dist/index.js'", most: 4_608, beside: core },
  { name: 'queues, beside the core', code: "export { queue, queuesOf } from './dist/index.js'", most: 2_560, beside: core },
  { name: 'who one is, and what one may do, beside the core', code: "export { meOf, accessOf } from './dist/index.js'", most: 2_048 },
  { name: 'hydrate, beside the core', code: "export { hydrate } from './dist/index.js'", most: 1_536 },
  // Its other half is the core's.
  { name: 'tabs, beside the core', code: "export { tabs } from './dist/tabs/index.js'", most: 8_192, beside: /^\.\.\/[a-z]+\.js$/ },
  // With idb, which a page that has it already need not have twice.
  { name: 'offline, beside the core', code: "export { keepOffline } from './dist/offline/index.js'", most: 6_272, beside: /^\.\.\/[a-z]+\.js$/ },
  // Nobody has it who does not open it.
  { name: 'devtools, beside the core', code: "export { mountDevtools } from './dist/devtools/index.js'", most: 6_400, beside: /^\.\.\/[a-z]+\.js$/ },
  ...['vue', 'svelte', 'solid', 'tanstack-db', 'tanstack-query'].map((name) => ({ name: `${name}, all of it`, code: `export * from './dist/${name}.js'`, most: 1_536, alone: true })),
  // The others have by themselves what it has beside them: what is selected, and to wait for what is there.
  { name: 'react, all of it', code: "export * from './dist/react.js'", most: 2_560, alone: true },
];

// An adapter is what binds the rest to a framework. What it binds is told above, and left out by bundlers where it is not used.
const bound = /^\.\/(?!shown|select|skip|dist)/;

for (const { name, code, most, alone = false, beside } of promised) {
  const entry = { name: 'entry', resolveId: (id) => (id === 'entry' ? new URL('entry.js', import.meta.url).pathname : null), load: (id) => (id.endsWith('/entry.js') ? code : null) };
  const rollupOptions = { input: 'entry', external: [/^(react|vue|svelte|solid-js)(\/|$)/, ...(alone ? [bound] : beside ? [beside] : [])], preserveEntrySignatures: 'strict' };
  const output = await build({ configFile: false, logLevel: 'error', plugins: [entry], build: { write: false, target: 'es2022', rollupOptions } });
  const bytes = gzipSync([output].flat().flatMap((one) => one.output.map((part) => part.code ?? '')).join('')).length;
  console.log(`${name}: ${bytes} bytes gzipped, of ${most}`);
  if (bytes > most * 0.9) {
    console.error(`${name}: less than a tenth of what is promised is left`);
    process.exitCode = 1;
  }
}

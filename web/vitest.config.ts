import { fileURLToPath } from 'node:url';
import { defineConfig } from 'vitest/config';
import { preact } from './portal/preact.ts';
import { components } from './sdk/examples/compile.ts';
import { guides } from './sdk/examples/guides.ts';

/** Ends of waits: a busy machine may take long, and an end costs nothing where what is waited for comes. */
const patient = { testTimeout: 180_000, hookTimeout: 180_000, expect: { poll: { timeout: 60_000 } } };

export default defineConfig({
  test: {
    // Cases of the conformance suite wait more than they work.
    maxConcurrency: 60,
    projects: [
      {
        test: { ...patient, name: 'sdk', root: './sdk', include: ['src/**/*.test.ts', 'cli/*.test.ts'], environment: 'node' },
      },
      {
        resolve: { conditions: ['kubecast-source'] },
        ssr: { resolve: { conditions: ['kubecast-source', 'node', 'import', 'default'] } },
        test: { ...patient, name: 'conformance', root: './conformance', include: ['**/*.test.ts'], environment: 'node' },
      },
      {
        // Svelte and Solid have another build for servers.
        resolve: { conditions: ['kubecast-source', 'browser'] },
        plugins: [guides(), components()],
        test: { ...patient, name: 'examples', root: './sdk/examples', include: ['browser.test.ts', 'guides.test.ts', 'infinite.test.ts', 'jsdom.test.ts', 'random.test.ts', 'skip.test.ts'], testTimeout: 240_000, server: { deps: { inline: [/svelte/, /solid-js/] } } },
      },
      {
        resolve: { conditions: ['kubecast-source'] },
        ssr: { resolve: { conditions: ['kubecast-source', 'node', 'import', 'default'] } },
        plugins: [guides(), components({ server: true })],
        test: { ...patient, name: 'examples on a server', root: './sdk/examples', include: ['server.test.ts', 'native.test.ts', 'offline.test.ts', 'proxy.test.ts'] },
      },
      {
        resolve: { conditions: ['kubecast-source'], alias: [{ find: /^react$/, replacement: fileURLToPath(new URL('./mock/react.mjs', import.meta.url)) }, ...preact] },
        test: {
          ...patient,
          name: 'portal',
          root: './portal',
          include: ['src/**/*.test.{ts,tsx}'],
          environment: 'happy-dom',
          setupFiles: ['../mock/setup.ts'],
          server: { deps: { inline: [/@tanstack/] } }, // it is built with Preact, too
        },
      },
    ],
  },
});

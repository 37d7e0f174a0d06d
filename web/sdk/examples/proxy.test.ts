// While a page is developed, Vite stands between it and the gateway. A gateway that is killed must be seen through it at once: a stream that stays open
// without a word is believed to be live until its silence has become too long, half a minute later.

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createServer } from 'vite';
import { afterAll, expect, test } from 'vitest';
import { MockGateway } from '../../mock/index.ts';
import { blocks } from './guides.ts';

const web = join(import.meta.dirname, '../..');
const stream = { headers: { Authorization: 'Bearer let-me-in', Accept: 'text/event-stream' } };

const folder = mkdtempSync(join(web, 'node_modules/.proxy-'));
afterAll(() => rmSync(folder, { recursive: true }));
/** As it stands in the SDK's README: 'guide:readme/vite.config.ts'. */
writeFileSync(join(folder, 'vite.config.ts'), blocks.get('readme/vite.config.ts') ?? '');

test.each([
  ['the README', folder, 'vite.config.ts'],
  ['the template', join(web, 'create/template'), 'vite.config.js'],
  ['the portal', join(web, 'portal'), 'vite.config.ts'],
])("%s's proxy breaks a stream when the gateway is killed, and has each of the gateway's paths", async (_, root, config) => {
  const gateway = new MockGateway();
  await gateway.start();
  process.env.KUBECAST_GATEWAY = gateway.url;
  const vite = await createServer({ root, configFile: join(root, config), logLevel: 'silent', optimizeDeps: { noDiscovery: true }, server: { port: 0, host: '127.0.0.1', hmr: false, watch: null } });
  try {
    await vite.listen();
    const address = vite.httpServer?.address();
    const at = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
    gateway.queue({ name: 'gpus', kind: 'ClusterQueue', jobs: [] });
    for (const path of ['/api/v1/pods', '/queues', '/clusters', '/auth/me']) {
      const answer = await fetch(at + path, { headers: { ...stream.headers, Accept: 'application/json' } });
      expect([path, answer.status, answer.headers.get('Content-Type')]).toEqual([path, 200, 'application/json']);
      await answer.text();
    }
    const answer = await fetch(`${at}/api/v1/pods`, stream);
    const reader = answer.body?.getReader();
    expect((await reader?.read())?.done).toBe(false);
    await gateway.stop();
    // By itself the proxy would leave it open for ever. Node's fetch takes a connection that breaks for an end, where it was not to be used again.
    for (let open = true; open; ) open = (await reader?.read().catch(() => undefined))?.done === false;
  } finally {
    await vite.close();
    await gateway.stop();
  }
});

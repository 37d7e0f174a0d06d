import { defineConfig } from 'vitest/config';

// The page and the gateway are one origin, here and where it is served.
const gateway = process.env.KUBECAST_GATEWAY ?? 'http://127.0.0.1:8080';
const paths = ['/stream', '/apis', '/api', '/auth', '/history', '/logs', '/queues', '/notifications', '/clusters'];

/** A stream that breaks at the gateway breaks in the page, too: by itself the proxy would leave it open, and the page would believe it. */
const breaks = (proxy) => proxy.on('proxyRes', (from, _, to) => from.once('close', () => from.complete || to.destroy()));

export default defineConfig({
  server: { proxy: Object.fromEntries(paths.map((path) => [path, { target: gateway, configure: breaks }])) },
  test: { environment: 'happy-dom' },
});

import { defineConfig } from 'vitest/config';

// The page and the gateway are one origin, here and where it is served.
const gateway = process.env.KUBECAST_GATEWAY ?? 'http://127.0.0.1:8080';

export default defineConfig({
  server: { proxy: Object.fromEntries(['/stream', '/apis', '/api', '/auth', '/history', '/logs', '/queues', '/notifications', '/clusters'].map((path) => [path, gateway])) },
  test: { environment: 'happy-dom' },
});

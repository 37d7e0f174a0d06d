import type { Plugin } from 'vite';
import { MockGateway } from './gateway.ts';
import { MockWorkload } from './workload.ts';

/** The mock inside Vite's development server: `npm run dev -- --mode mock`, token `let-me-in`. */
export function mockPlugin(): Plugin {
  return {
    name: 'kubecast-mock',
    configureServer(server) {
      const gateway = new MockGateway();
      gateway.retry = 2_000;
      const workload = new MockWorkload(gateway.cluster);
      workload.populate(120);
      const timer = setInterval(() => workload.tick(), 400);
      server.httpServer?.on('close', () => clearInterval(timer));
      server.middlewares.use((request, response, next) => gateway.handle(request, response, () => next()));
    },
  };
}

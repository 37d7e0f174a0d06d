import type { Plugin } from 'vite';
import { MockGateway } from './gateway.ts';
import { MockWorld } from './world.ts';

/** The mock inside Vite's development server: `npm run dev -- --mode mock`, token `let-me-in`. */
export function mockPlugin(): Plugin {
  return {
    name: 'kubecast-mock',
    configureServer(server) {
      const gateway = new MockGateway();
      gateway.retry = 2_000;
      const world = new MockWorld(gateway);
      const timer = setInterval(() => world.tick(), 400);
      server.httpServer?.on('close', () => clearInterval(timer));
      server.middlewares.use((request, response, next) => gateway.handle(request, response, () => next()));
    },
  };
}

// What stands between a browser and the gateway: it adds a page of a test's own to what the gateway serves, counts its streams, and lets
// their lines die in two ways.

import { createServer, request, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface OpenStream {
  readonly lastEventId: string;
  readonly from: IncomingMessage;
  readonly to: ServerResponse;
}

export class Front {
  /** Those that are open, in the order in which they were asked for. */
  readonly streams = new Set<OpenStream>();
  readonly #server: Server;
  #url = '';

  /** @param page what is served at `/tabs-page`; everything else is the gateway's */
  static async of(gateway: string, page: string): Promise<Front> {
    const front = new Front(gateway, page);
    await new Promise<void>((resolve) => front.#server.listen(0, '127.0.0.1', resolve));
    front.#url = `http://127.0.0.1:${(front.#server.address() as AddressInfo).port}`;
    return front;
  }

  private constructor(gateway: string, page: string) {
    this.#server = createServer((asked, answer) => {
      if (asked.url === '/tabs-page') {
        answer.writeHead(200, { 'Content-Type': 'text/html' }).end(page);
        return;
      }
      const further = request(gateway + (asked.url ?? '/'), { method: asked.method, headers: asked.headers }, (from) => {
        answer.writeHead(from.statusCode ?? 502, from.headers);
        from.pipe(answer);
        from.on('error', () => answer.destroy());
        if (!asked.url?.startsWith('/stream?') || from.statusCode !== 200) return;
        const stream = { lastEventId: String(asked.headers['last-event-id'] ?? ''), from, to: answer };
        this.streams.add(stream);
        answer.on('close', () => this.streams.delete(stream));
      });
      further.on('error', () => answer.destroy());
      answer.on('close', () => further.destroy());
      asked.pipe(further);
    });
  }

  get url(): string {
    return this.#url;
  }

  /** Each stream breaks. */
  cut(): void {
    for (const { to } of this.streams) to.destroy();
  }

  /** Nothing more comes on the streams that are open, and nobody is told: as when a machine has slept, or has another network. */
  silence(): void {
    for (const { from, to } of this.streams) {
      from.unpipe(to);
      from.resume();
    }
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}

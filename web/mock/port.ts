// A port of loopback, on which a handler of requests listens.

import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';

export class Port {
  readonly #handle: (request: IncomingMessage, response: ServerResponse) => void;
  readonly #sockets = new Set<Socket>();
  #server: Server | undefined;
  #number = 0;

  constructor(handle: (request: IncomingMessage, response: ServerResponse) => void) {
    this.#handle = handle;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#number}`;
  }

  /** Without a number it is the one of before, or a free one. */
  async open(number = this.#number): Promise<void> {
    const { createServer } = await import('node:http'); // where the mock is used in memory, there may be none
    const server = createServer(this.#handle);
    this.#server = server;
    server.on('connection', (socket) => {
      this.#sockets.add(socket);
      socket.once('close', () => this.#sockets.delete(socket));
    });
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(number, '127.0.0.1', resolve);
    });
    this.#number = (server.address() as AddressInfo).port;
  }

  /** Every connection breaks. */
  async close(): Promise<void> {
    const server = this.#server;
    this.#server = undefined;
    if (!server) return;
    const closed = new Promise((resolve) => server.close(resolve));
    for (const socket of this.#sockets) socket.destroy();
    await closed;
  }
}

// A line to an address that can be cut: whoever is connected is cut off, and nobody gets through until it is mended.

import { createServer, connect, type Server, type Socket } from 'node:net';
import { freeAddress } from './processes.ts';

export class Line {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  /** Where it begins; the same for ever. */
  readonly address: string;

  /** To `host:port`. */
  static async to(target: string): Promise<Line> {
    const line = new Line(target, await freeAddress());
    await line.mend();
    return line;
  }

  private constructor(target: string, address: string) {
    this.address = address;
    const [host, port] = target.split(':');
    this.#server = createServer((near) => {
      const far = connect(Number(port), host);
      for (const [one, other] of [[near, far], [far, near]] as const) {
        this.#open.add(one);
        one.setNoDelay(true);
        one.on('error', () => undefined);
        one.on('close', () => {
          this.#open.delete(one);
          other.destroy();
        });
      }
      near.pipe(far).pipe(near);
    });
  }

  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  async mend(): Promise<void> {
    const [host, port] = this.address.split(':');
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(Number(port), host, resolve));
  }
}

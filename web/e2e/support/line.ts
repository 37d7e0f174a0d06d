// A line to an address that can be cut: whoever is connected is cut off, and nobody gets through until it is mended.

import { createServer, connect, type Server, type Socket } from 'node:net';

export class Line {
  readonly #server: Server;
  readonly #open = new Set<Socket>();
  #address: string;

  /** To `host:port`. */
  static async to(target: string): Promise<Line> {
    const line = new Line(target);
    await line.mend();
    return line;
  }

  private constructor(target: string) {
    this.#address = '127.0.0.1:0';
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

  /** Where it begins; the same for ever. */
  get address(): string {
    return this.#address;
  }

  async cut(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const socket of this.#open) socket.destroy();
    await closed;
  }

  async mend(): Promise<void> {
    const [host, port] = this.#address.split(':');
    await new Promise<void>((resolve, reject) => this.#server.once('error', reject).listen(Number(port), host, resolve));
    const at = this.#server.address();
    if (at !== null && typeof at === 'object') this.#address = `127.0.0.1:${at.port}`;
  }
}

// One client with its own server, for as long as a case takes.

import { Failure, pause, same, until, type Case } from '../case.ts';
import { path, Server, type Connection } from './server.ts';
import type { ClientSubject, ClientUnderTest, Row } from './subject.ts';

export class Trial {
  readonly server: Server;
  readonly client: ClientUnderTest;
  readonly silence: number;

  constructor(server: Server, client: ClientUnderTest, silence: number) {
    this.server = server;
    this.client = client;
    this.silence = silence;
  }

  /** The next connection. */
  next(within?: number): Promise<Connection> {
    return this.server.next(within);
  }

  /** A client that has these, and says so. */
  async has(objects: readonly Row[], version = 10, retry?: number): Promise<Connection> {
    const connection = (await this.next()).begin(retry).snapshot(objects, version);
    await this.shows(...objects.map(labelOf));
    return connection;
  }

  /** In the end the client is live, and has these: `name` or `name@version`. */
  async shows(...wanted: readonly string[]): Promise<void> {
    const sorted = [...wanted].sort().join();
    await until(() => this.client.status() === 'live' && this.#seen(wanted) === sorted, () => `the client ${this.#says(wanted)}, and not live with ${sorted || 'nothing'}`);
  }

  /** In the end the client does not say live. */
  async notLive(within?: number): Promise<void> {
    await until(() => this.client.status() !== 'live', () => 'the client goes on to say live', within);
  }

  /** For a moment the client does not say live, not even once. */
  async staysNotLive(moment = 250): Promise<void> {
    const end = performance.now() + moment;
    do {
      if (this.client.status() === 'live') throw new Failure(`the client says live with ${this.#seen([]) || 'nothing'}`);
      await pause(5);
    } while (performance.now() < end);
  }

  /** Live or not, it shows these. */
  keeps(...wanted: readonly string[]): void {
    same(this.#seen(wanted), [...wanted].sort().join(), 'the client shows');
  }

  #seen(wanted: readonly string[]): string {
    const versions = wanted.some((one) => one.includes('@'));
    return [...this.client.rows()].map((row) => (versions ? labelOf(row) : row.metadata.name)).sort().join();
  }

  #says(wanted: readonly string[]): string {
    return `says ${this.client.status()} with ${this.#seen(wanted) || 'nothing'}`;
  }
}

const labelOf = ({ metadata }: Row): string => `${metadata.name}@${metadata.resourceVersion ?? ''}`;

export function clientCase(name: string, why: string, run: (trial: Trial) => Promise<void>, needs?: 'deltas'): Case<ClientSubject> {
  return {
    name,
    why,
    needs,
    run: async ({ open, silence, network }) => {
      const server = new Server();
      if (network) await server.listen();
      let client: ClientUnderTest | undefined;
      try {
        client = open({ url: server.url, fetch: network ? globalThis.fetch : server.fetch, path });
        await run(new Trial(server, client, silence));
      } finally {
        client?.close();
        server.close();
      }
    },
  };
}

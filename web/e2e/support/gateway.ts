// A real gateway in a folder, with a key of its own, at an address where it comes back.

import { existsSync } from 'node:fs';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { Program } from './processes.ts';

export const gatewayPath = process.env.KUBECAST_GATEWAY_BIN ?? fileURLToPath(new URL('../../../bin/gateway', import.meta.url));
export const hasGateway = existsSync(gatewayPath);

export class Gateway {
  /** Where its configuration, its key, its history and a kubeconfig named so are. */
  readonly dir: string;
  readonly #address: string;
  #program: Program | undefined;
  scheme = 'http';

  constructor(dir: string, address: string) {
    this.dir = dir;
    this.#address = address;
  }

  get url(): string {
    return `${this.scheme}://${this.#address}`;
  }

  /** Configures it anew with these sections, and the others as they were. */
  async write(sections: object): Promise<void> {
    const file = join(this.dir, 'gateway.yaml');
    const before = JSON.parse(await readFile(file, 'utf8').catch(() => '{}')) as object;
    await writeFile(file, JSON.stringify({ ...before, ...sections })); // JSON is YAML
  }

  /** The issuer of its tokens, as it is configured with it. */
  async issuer(): Promise<object> {
    await this.token('nobody'); // makes the key
    return { issuer: 'https://kubecast.local', audiences: ['kubecast'], publicKeyFile: join(this.dir, 'key.pem.pub'), trusted: 'same' };
  }

  /** Listens where it did before, if it did. */
  async start(): Promise<void> {
    this.#program = new Program('gateway', gatewayPath, [
      'serve', '--kubeconfig', join(this.dir, 'kubeconfig'), '--config', join(this.dir, 'gateway.yaml'), '--listen', this.#address, '--ops-listen', '127.0.0.1:0',
    ]);
    await this.#program.says(/msg=listening addr=/);
  }

  async stop(): Promise<void> {
    await this.#program?.stop();
  }

  async kill(): Promise<void> {
    await this.#program?.kill();
  }

  /** What it has said until now. */
  get output(): string {
    return this.#program?.output ?? '';
  }

  async token(user: string, groups: readonly string[] = [], ttl = '1h'): Promise<string> {
    const args = ['token', '--key', join(this.dir, 'key.pem'), '--user', user, '--ttl', ttl];
    const output = await new Program('gateway token', gatewayPath, [...args, ...groups.flatMap((group) => ['--group', group])]).result();
    return output.trim().split('\n').at(-1) ?? '';
  }
}

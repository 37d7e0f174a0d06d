// A real nginx before a gateway, which shares its host with others.

import { existsSync } from 'node:fs';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Program } from './processes.ts';

export const nginxPath = process.env.KUBECAST_NGINX ?? '/usr/sbin/nginx';
export const hasNginx = existsSync(nginxPath);

export class Nginx {
  readonly address: string;
  readonly #dir: string;
  readonly #program: Program;

  /** `locations` are the directives of the only server. */
  static async start(address: string, locations: string): Promise<Nginx> {
    const dir = await mkdtemp(join(tmpdir(), 'kubecast-nginx-'));
    const temporary = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((kind) => `${kind}_temp_path ${dir}/${kind};`).join('\n');
    // One process, so that none is left behind.
    await writeFile(
      join(dir, 'nginx.conf'),
      `daemon off;\nmaster_process off;\npid ${dir}/pid;\nevents {}\nhttp {\naccess_log off;\n${temporary}\nserver {\nlisten ${address};\n${locations}\n}\n}\n`,
    );
    const nginx = new Nginx(address, dir);
    for (let tries = 0; ; tries++) {
      try {
        await fetch(nginx.url);
        return nginx;
      } catch (error) {
        if (tries < 1_200) await new Promise((resolve) => setTimeout(resolve, 50));
        else throw new Error(`nginx does not answer:\n${nginx.#program.output}`, { cause: error });
      }
    }
  }

  private constructor(address: string, dir: string) {
    this.address = address;
    this.#dir = dir;
    this.#program = new Program('nginx', nginxPath, ['-p', dir, '-c', join(dir, 'nginx.conf'), '-e', 'stderr']);
  }

  get url(): string {
    return `http://${this.address}`;
  }

  async stop(): Promise<void> {
    await this.#program.stop();
    await rm(this.#dir, { recursive: true, force: true });
  }
}

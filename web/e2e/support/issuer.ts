// Dex on loopback, and ways to hurt it.

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { Program } from './processes.ts';

export const issuerPath = process.env.KUBECAST_DEVISSUER_BIN ?? fileURLToPath(new URL('../../../bin/devissuer', import.meta.url));

export const hasIssuer = existsSync(issuerPath);

export class Issuer {
  readonly url: string;
  readonly #control: string;
  readonly #program: Program;

  /** @param tokens how long its ID tokens are good */
  static async start(redirect: string, tokens: string): Promise<Issuer> {
    const program = new Program('devissuer', issuerPath, ['--redirects', redirect, '--tokens', tokens]);
    const [, url = '', control = ''] = await program.says(/^issuer=(\S+) control=(\S+)$/m);
    return new Issuer(program, url, control);
  }

  private constructor(program: Program, url: string, control: string) {
    this.#program = program;
    this.url = url;
    this.#control = control;
  }

  async hurt(how: 'rotate' | 'away' | 'back' | 'end'): Promise<void> {
    const response = await fetch(`${this.#control}/${how}`, { method: 'POST' });
    if (!response.ok) throw new Error(`${how}: HTTP ${response.status}`);
  }

  /** How often a path was asked for. */
  async asked(path: string): Promise<number> {
    return Number(await (await fetch(`${this.#control}/asked?${new URLSearchParams({ path }).toString()}`)).text());
  }

  stop(): Promise<void> {
    return this.#program.stop();
  }
}

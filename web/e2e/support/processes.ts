// Programs that a test starts, and that must not outlive it, however it ends.

import { spawn, type ChildProcess } from 'node:child_process';
import { createServer } from 'node:net';

const running = new Set<ChildProcess>();

// When the test run itself is cut off, nothing asynchronous happens any more. A signal alone would not
// come through 'exit'.
process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, () => process.exit(1));

export class Program {
  readonly name: string;
  readonly #child: ChildProcess;
  readonly #ended: Promise<void>;
  #output = '';

  /** Starts a program; its standard input is empty unless given. */
  constructor(name: string, path: string, args: readonly string[], input = '') {
    this.name = name;
    this.#child = spawn(path, args, { stdio: ['pipe', 'pipe', 'pipe'] });
    running.add(this.#child);
    for (const stream of [this.#child.stdout, this.#child.stderr]) {
      stream?.on('data', (bytes: Buffer) => (this.#output += bytes.toString()));
    }
    this.#child.stdin?.on('error', () => undefined); // it may have ended without reading
    this.#child.stdin?.end(input);
    this.#ended = new Promise((resolve) => {
      this.#child.once('error', (error) => {
        this.#output += error.message;
        running.delete(this.#child);
        resolve();
      });
      this.#child.once('close', () => {
        running.delete(this.#child);
        resolve();
      });
    });
  }

  get output(): string {
    return this.#output;
  }

  /** What the output says, once it does. Fails, with all of the output, if the program ends before. */
  async says(pattern: RegExp, within = 60_000): Promise<RegExpExecArray> {
    const deadline = Date.now() + within;
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match) return match;
      const over = !running.has(this.#child);
      if (over || Date.now() > deadline) {
        throw new Error(`${this.name} ${over ? 'ended' : 'ran on'} without saying ${String(pattern)}:\n${this.#output}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  /** Its output, once it has ended by itself and well. */
  async result(): Promise<string> {
    await this.#ended;
    if (this.#child.exitCode !== 0) throw new Error(`${this.name} failed (${this.#child.exitCode ?? 'killed'}):\n${this.#output}`);
    return this.#output;
  }

  /** Ends it: asked first, then not. */
  async stop(patience = 15_000): Promise<void> {
    this.#child.kill('SIGTERM');
    const timer = setTimeout(() => this.#child.kill('SIGKILL'), patience);
    await this.#ended;
    clearTimeout(timer);
  }

  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }
}

/**
 * An address on loopback at which nobody listens, for who must be known by it before he does, or listens there again. Its port is outside of the
 * range of ephemeral ports: nobody else gets it in between, and no client that tries again connects to itself.
 */
export async function freeAddress(): Promise<string> {
  for (let tries = 0; tries < 100; tries++) {
    const port = 15_000 + Math.floor(Math.random() * 15_000);
    const server = createServer();
    const free = await new Promise<boolean>((resolve) => server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true)));
    if (!free) continue;
    await new Promise((resolve) => server.close(resolve));
    return `127.0.0.1:${port}`;
  }
  throw new Error('no port is free');
}

// Which token a stream is opened with, and when another one is asked for.

import { reasonOf } from './abort.ts';
import { backoff } from './backoff.ts';
import type { ClientOptions } from './clientoptions.ts';
import { sleep, within } from './deadline.ts';
import { Lost, textOf } from './lost.ts';

/**
 * Why a token is asked for. `connect`: an attempt begins, a token at hand will do; `expiring`: the one in
 * use ends soon; `refused`: the server did not accept the one in use. For the last two a token that is
 * not new is of no use, and undefined says that there is none.
 */
export type TokenReason = 'connect' | 'expiring' | 'refused';

/** Gives a token, and a new one when the gateway refuses it or it ends; undefined: there is none. */
export type TokenSource = (reason: TokenReason) => string | undefined | Promise<string | undefined>;

export class Credentials {
  readonly #options: Pick<ClientOptions, 'token' | 'session' | 'openTimeout' | 'random'>;
  /** Of the present stream, or the one that was refused last. */
  token: string | undefined;
  /** A token already fetched for the next stream, and whether that was tried beside the present one. */
  #next: string | undefined;
  #tried = false;
  /** Why to ask for another. */
  #reason: TokenReason = 'connect';
  /** How the token in use was refused, or the one that it has taken the place of. */
  #refused: Lost | undefined;
  #renewing = false;

  constructor(options: Pick<ClientOptions, 'token' | 'session' | 'openTimeout' | 'random'>) {
    this.#options = options;
  }

  /** With what the stream should go on, as far as that is known. */
  get wanted(): string | undefined {
    return this.#tried ? this.token : (this.#next ?? this.token);
  }

  /** The token of a new attempt, which is in use from here on, also if it is refused. Throws {@link Lost} if there is none. */
  async take(signal: AbortSignal): Promise<string | undefined> {
    const token = this.#next ?? (await this.#ask(this.#reason, signal));
    // One that is not new would be refused again, and a flood of those helps nobody.
    if (this.#refused && !this.#isNew(token)) throw this.#refused;
    this.#reason = 'connect';
    this.#next = undefined;
    this.#tried = false;
    return (this.token = token);
  }

  /** A stream with this token is open, and takes the place of the present one. */
  use(token: string | undefined): void {
    this.token = token;
    this.#refused = undefined;
    if (token === this.#next) this.#next = undefined;
    if (this.#next === undefined) this.#tried = false;
  }

  /** The attempt has ended; one that is broken off may come back with the same token, which nobody has refused. Returns whether another one may follow at once: its token was refused, and the one before was not. */
  ended(error: Lost): boolean {
    const { reason } = error;
    const before = this.#refused;
    this.#refused = reason === 'http:401' ? error : undefined;
    if (reason === 'goodbye:expired') this.#reason = 'expiring';
    if (!this.#refused || before) return false;
    this.#reason = 'refused';
    return true;
  }

  /** A token that could not be handed over is for when the present stream has ended, unless it was refused (`good` is false). */
  keep(token: string | undefined, good: boolean): void {
    if (token !== this.#next) return;
    if (good) this.#tried = true;
    else this.#next = undefined;
  }

  /** Asks until there is an answer, or the stream is over: whoever gives tokens may be away for a moment. Calls `then` if there is another token. */
  async renew(attempt: AbortSignal, then: () => void): Promise<void> {
    if (this.#renewing) return;
    this.#renewing = true;
    for (let failures = 1; !attempt.aborted; failures++) {
      try {
        const token = await this.#ask('expiring', attempt);
        if (this.#isNew(token)) {
          this.#next = token;
          this.#tried = false;
          then();
        }
        break;
      } catch {
        await sleep(backoff({ failures }, this.#options.random), attempt);
      }
    }
    this.#renewing = false;
  }

  #isNew(token: string | undefined): boolean {
    return token !== undefined && token !== this.token;
  }

  async #ask(reason: TokenReason, attempt: AbortSignal): Promise<string | undefined> {
    const { token, session, openTimeout = 20_000 } = this.#options;
    try {
      return await within(openTimeout, async () => (token ?? session)?.(reason), attempt);
    } catch (error) {
      if (attempt.aborted) throw reasonOf(attempt);
      throw new Lost('token', textOf(error)); // its source may come back
    }
  }
}

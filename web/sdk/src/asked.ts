// What is asked for rather than followed: one answer for all who show it, asked for anew when it may have changed.

import { backoff } from './backoff.ts';
import { messageOf } from './connection.ts';
import type { Kubecast } from './kubecast.ts';
import { Listeners } from './listeners.ts';
import { finalOf } from './lost.ts';
import { parse, text } from './object.ts';
import type { StaleReason, Status } from './state.ts';

/** Immutable, and the same one until the next notification. */
export interface AskedSnapshot<T> {
  /** The last answer, if there ever was one; undefined of what is `denied`. */
  readonly data: T | undefined;
  /** `live`: it is the answer to the last question, and nobody says whether it has changed since. */
  readonly status: Status;
  /** `reconnecting` of what is `stale`: the last question failed, and is asked again. */
  readonly reason: StaleReason | undefined;
  readonly error: Error | undefined;
}

/** Asked for while somebody has subscribed. All of it may be passed around unbound. */
export interface Asked<T> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => AskedSnapshot<T>;
  readonly getServerSnapshot: () => AskedSnapshot<T>;
  /** Asks anew, soon: once for all who want it at the same time. */
  readonly retry: () => void;
}

/** The gateway has refused; `message` has its words. */
export class AskedError extends Error {
  override readonly name = 'AskedError';
  /** That of HTTP: 401, 403, 404, … */
  declare readonly status: number;
  /**
   * Why, in a word for programs: `NotEnabled` (this gateway keeps no history, or has no login), `NotRecorded` (of another kind it does), `NotKept` (a log or a spec), and
   * those of Kubernetes, as `NotFound`, `Forbidden` and `Expired`. Empty of an older gateway, and of a proxy.
   */
  declare readonly reason: string;

  constructor(status: number, message: string, reason = '') {
    super(message);
    this.status = status;
    this.reason = reason;
  }
}

/** What nothing is known of yet. */
const unasked: AskedSnapshot<never> = { data: undefined, status: 'loading', reason: undefined, error: undefined };
/** From one question to the next, in milliseconds. */
const leastGap = 500;
/** An answer that is older, in milliseconds, is not relied on by who begins to show it. */
const oldAge = 30_000;
/** How many answers that nobody shows are kept. */
const most = 100;

const answers = new WeakMap<Kubecast, Map<string, Answer<unknown>>>();

/** Always the same one for a key, as long as it is shown. */
export function asked<T>(kc: Kubecast, key: string, ask: () => Promise<T>): Answer<T> {
  const of = answers.get(kc) ?? new Map<string, Answer<unknown>>();
  answers.set(kc, of);
  const present = of.get(key);
  if (present) return present as Answer<T>;
  if (of.size >= most) for (const [old, answer] of of) if (!answer.shown) of.delete(old);
  const made = new Answer(ask);
  of.set(key, made);
  return made;
}

/** What the gateway answers to a request, as JSON, or as `read` reads that. Rejects with an {@link AskedError} in the gateway's own words. */
export function answerTo(kc: Kubecast, path: string, init: RequestInit = {}, read: (said: string) => unknown = JSON.parse): Promise<unknown> {
  return saidTo(kc, path, init).then((said) => read(said));
}

/** The same, as text. */
export function saidTo(kc: Kubecast, path: string, init: RequestInit): Promise<string> {
  return kc.request(path, init, async (response) => {
    const said = await response.text();
    if (!response.ok) throw new AskedError(response.status, messageOf(said, response), text(parse(said)?.reason));
    return said;
  });
}

export class Answer<T> implements Asked<T> {
  readonly #ask: () => Promise<T>;
  readonly #listeners = new Listeners();
  #snapshot: AskedSnapshot<T> = unasked;
  #subscribers = 0;
  #asking = false;
  #again = false;
  #failures = 0;
  #at = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ask: () => Promise<T>) {
    this.#ask = ask;
  }

  get shown(): boolean {
    return this.#subscribers > 0;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const leave = this.#listeners.subscribe(listener);
    if (this.#subscribers++ === 0 && (this.#snapshot.status !== 'live' || performance.now() - this.#at > oldAge)) this.retry();
    return () => {
      if (leave() && --this.#subscribers === 0) clearTimeout(this.#timer);
    };
  };

  readonly getSnapshot = (): AskedSnapshot<T> => this.#snapshot;
  readonly getServerSnapshot = (): AskedSnapshot<T> => unasked;

  readonly retry = (): void => {
    this.#again = true;
    this.#plan(Math.max(0, this.#at + leastGap - performance.now()));
  };

  /** It may not be seen any more: what was answered is not shown again before it is asked for anew. Nobody is told. */
  forget(): void {
    this.#snapshot = unasked;
  }

  #plan(delay: number): void {
    clearTimeout(this.#timer);
    if (!this.#asking && this.shown) this.#timer = setTimeout(() => void this.#go(), delay);
  }

  async #go(): Promise<void> {
    this.#asking = true;
    this.#again = false;
    this.#at = performance.now();
    try {
      this.#snapshot = { ...unasked, data: await this.#ask(), status: 'live' };
      this.#failures = 0;
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      const final = finalOf(`:${statusOf(error) as string}`);
      if (final === 'denied') this.forget();
      const { data } = this.#snapshot;
      const status = final ?? (data ? 'stale' : 'loading');
      this.#snapshot = { data, status, reason: status === 'stale' ? 'reconnecting' : undefined, error };
      this.#failures++;
    }
    this.#asking = false;
    this.#listeners.tell();
    const { status, error } = this.#snapshot;
    if (this.#again) this.retry();
    else if (/loading|stale/.test(status) || statusOf(error) === 401) this.#plan(backoff({ failures: this.#failures }));
  }
}

/** Of an {@link AskedError}. */
export const statusOf = (error: unknown): unknown => (Object(error) as { readonly status?: unknown }).status;

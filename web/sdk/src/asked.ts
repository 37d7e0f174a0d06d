// What is asked for rather than followed: one answer for all who show it, asked for anew when it may have changed.

import { backoff } from './backoff.ts';
import { messageOf } from './connection.ts';
import type { Kubecast } from './kubecast.ts';
import { Listeners } from './listeners.ts';

/** Immutable, and the same one until the next notification. */
export interface AskedSnapshot<T> {
  /** The last answer, if there ever was one. */
  readonly data: T | undefined;
  /** `failed`: there is no answer, or it is old; where that may heal it is asked for again. */
  readonly status: 'loading' | 'current' | 'failed';
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

/** The gateway has refused. */
export class AskedError extends Error {
  override readonly name = 'AskedError';
  readonly status: number;

  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

const unasked: AskedSnapshot<never> = { data: undefined, status: 'loading', error: undefined };
/** From one question to the next, in milliseconds. */
const leastGap = 500;
/** An answer that is older, in milliseconds, is not relied on by who begins to show it. */
const oldAge = 30_000;
/** How many answers that nobody shows are kept. */
const most = 100;

const answers = new WeakMap<Kubecast, Map<string, Answer<unknown>>>();

/**
 * Always the same one for a key, as long as it is shown.
 *
 * @param again after how long an answer is asked for again, in milliseconds, for whoever still shows it; undefined: it is not
 */
export function asked<T>(kc: Kubecast, key: string, ask: () => Promise<T>, again: (data: T) => number | undefined = () => undefined): Asked<T> {
  const of = answers.get(kc) ?? new Map<string, Answer<unknown>>();
  answers.set(kc, of);
  const present = of.get(key);
  if (present) return present as Answer<T>;
  if (of.size >= most) for (const [old, answer] of of) if (!answer.shown) of.delete(old);
  const made = new Answer(ask, again);
  of.set(key, made as Answer<unknown>);
  return made;
}

/** What the gateway answers to a request, as JSON. Rejects with an {@link AskedError} in the gateway's own words. */
export function answerTo(kc: Kubecast, path: string, init: RequestInit = {}): Promise<unknown> {
  return saidTo(kc, path, init).then((said) => JSON.parse(said) as unknown);
}

/** The same, as text. */
export function saidTo(kc: Kubecast, path: string, init: RequestInit): Promise<string> {
  return kc.request(path, init, async (response) => {
    const said = await response.text();
    if (!response.ok) throw new AskedError(response.status, messageOf(said, response));
    return said;
  });
}

class Answer<T> implements Asked<T> {
  readonly #ask: () => Promise<T>;
  readonly #again: (data: T) => number | undefined;
  readonly #listeners = new Listeners();
  #snapshot: AskedSnapshot<T> = unasked;
  #subscribers = 0;
  #asking = false;
  #dirty = false;
  #failures = 0;
  #at = -Infinity;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(ask: () => Promise<T>, again: (data: T) => number | undefined) {
    this.#ask = ask;
    this.#again = again;
  }

  get shown(): boolean {
    return this.#subscribers > 0;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const leave = this.#listeners.subscribe(listener);
    if (this.#subscribers++ === 0) this.#begin();
    let here = true;
    return () => {
      if (!here) return;
      here = false;
      leave();
      if (--this.#subscribers === 0) clearTimeout(this.#timer);
    };
  };

  readonly getSnapshot = (): AskedSnapshot<T> => this.#snapshot;
  readonly getServerSnapshot = (): AskedSnapshot<T> => unasked;

  readonly retry = (): void => {
    this.#dirty = true;
    this.#plan(Math.max(0, this.#at + leastGap - performance.now()));
  };

  /** Somebody begins to show it, and nobody else does. */
  #begin(): void {
    const age = performance.now() - this.#at;
    const next = this.#next();
    if (this.#snapshot.status !== 'current' || age > oldAge) this.retry();
    else if (next !== undefined) this.#plan(Math.max(0, next - age));
  }

  #plan(delay: number): void {
    clearTimeout(this.#timer);
    if (!this.#asking && this.shown) this.#timer = setTimeout(() => void this.#go(), delay);
  }

  async #go(): Promise<void> {
    this.#asking = true;
    this.#dirty = false;
    this.#at = performance.now();
    try {
      this.#snapshot = { data: await this.#ask(), status: 'current', error: undefined };
      this.#failures = 0;
    } catch (thrown) {
      const error = thrown instanceof Error ? thrown : new Error(String(thrown));
      this.#snapshot = { data: this.#snapshot.data, status: 'failed', error };
      this.#failures++;
    }
    this.#asking = false;
    this.#listeners.tell();
    const next = this.#next();
    if (this.#dirty) this.retry();
    else if (next !== undefined) this.#plan(next);
  }

  /** Until it is asked for again although nobody has said so. */
  #next(): number | undefined {
    const { data, error } = this.#snapshot;
    if (error) return isLasting(error) ? undefined : backoff({ failures: this.#failures, retry: undefined });
    return data === undefined ? undefined : this.#again(data);
  }
}

/** Asking again would not help. */
function isLasting(error: Error): boolean {
  const status = 'status' in error ? Number(error.status) : 0;
  return status >= 400 && status < 500 && status !== 401 && status !== 429;
}

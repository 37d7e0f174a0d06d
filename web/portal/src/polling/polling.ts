// What is asked for as a list, and asked for again when a stream says that something has changed: at most so often, and by one request at a time.

import { AskedError, isFinal, type Status } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect, useMemo, useSyncExternalStore } from 'react';

export interface Read<T> {
  /** What was read last, also while it is being read again or that has failed. What may not be seen any more is not there. */
  readonly data: T | undefined;
  /** When that was asked for, in milliseconds since the epoch. */
  readonly at: number | undefined;
  /** Why it could not be read the last time. */
  readonly error: Error | undefined;
}

/** In milliseconds: until what may heal is tried again. */
const again = 5_000;
/** What takes long to read is read as much less often. */
const share = 4;

export class Reading<T> {
  readonly #read: () => Promise<T>;
  readonly #gap: number;
  readonly #idle: (data: T) => number | undefined;
  readonly #listeners = new Set<() => void>();
  #snapshot: Read<T> = { data: undefined, at: undefined, error: undefined };
  #timer: ReturnType<typeof setTimeout> | undefined;
  #notBefore = 0;
  #asking = false;
  #dirty = true;

  /**
   * `gap`: the least time between two readings, in milliseconds; `idle`: until what was read is read again although nobody has said that it changed,
   * undefined for never.
   */
  constructor(read: () => Promise<T>, gap: number, idle: (data: T) => number | undefined = () => undefined) {
    this.#read = read;
    this.#gap = gap;
    this.#idle = idle;
  }

  readonly getSnapshot = (): Read<T> => this.#snapshot;

  /** It is read while somebody has subscribed. */
  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.#plan();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearTimeout(this.#timer);
    };
  };

  /** Something has changed. */
  readonly ask = (): void => {
    this.#dirty = true;
    this.#plan();
  };

  readonly retry = (): void => {
    this.#notBefore = 0;
    this.ask();
  };

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#asking || this.#listeners.size === 0) return;
    const wait = this.#dirty ? 0 : this.#later();
    if (wait !== undefined) this.#timer = setTimeout(() => void this.#go(), Math.max(wait, this.#notBefore - performance.now()));
  }

  /** Until it is read although nothing has changed. */
  #later(): number | undefined {
    const { data, error } = this.#snapshot;
    const { status = 503 } = (error ?? {}) as { status?: number };
    if (error) return status >= 500 || status === 429 ? again : undefined;
    return data === undefined ? undefined : this.#idle(data);
  }

  async #go(): Promise<void> {
    this.#asking = true;
    this.#dirty = false;
    const began = performance.now();
    const at = Date.now();
    this.#snapshot = await this.#read().then(
      (data): Read<T> => ({ data, at, error: undefined }),
      (error: unknown): Read<T> => ({
        ...(isForbidden(error) ? { data: undefined, at: undefined } : this.#snapshot),
        error: error instanceof Error ? error : new Error(String(error)),
      }),
    );
    this.#asking = false;
    const now = performance.now();
    this.#notBefore = now + Math.max(this.#gap, share * (now - began));
    for (const listener of [...this.#listeners]) listener();
    this.#plan();
  }
}

/** Whether the caller may not see what was asked for. */
export function isForbidden(error: unknown): error is AskedError {
  return error instanceof AskedError && error.status === 403;
}

/** Reads again when `signal` is another value. */
export function useRead<T>(reading: Reading<T>, signal?: unknown): Read<T> & Pick<Reading<T>, 'retry'> {
  const shown = useSyncExternalStore(reading.subscribe, reading.getSnapshot);
  useEffect(() => {
    if (signal !== undefined) reading.ask();
  }, [reading, signal]);
  return { ...shown, retry: reading.retry };
}

/** The same, and anew when `read` or `idle` is another function. */
export function useReading<T>(read: () => Promise<T>, signal: unknown, gap = 1_000, idle?: (data: T) => number | undefined): Read<T> & Pick<Reading<T>, 'retry'> {
  return useRead(
    useMemo(() => new Reading(read, gap, idle), [read, gap, idle]),
    signal,
  );
}

/**
 * Follows a stream again once the list that belongs to it can be read. `at` is when that was read. A permission that comes back between the two
 * would leave a list that looks right and that nothing renews.
 */
export function useFollowedAgain(status: Status, at: number | undefined): void {
  const kc = useKubecast();
  useEffect(() => {
    if (isFinal({ status }) && at !== undefined) kc.wake(); // asks whether it is refused still
  }, [kc, status, at]);
}

// Waiting for others, but not for ever.

import { abort as abortWith, onAbort, reasonOf } from './abort.ts';
import { Lost } from './lost.ts';

/**
 * What `what` comes to, unless it takes too long ({@link Lost}) or `signal` is aborted: then it is told by the signal it was given, and
 * waited for no more, whether it listens or not. The time is that in which the machine is awake.
 */
export async function within<T>(ms: number, what: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal | null): Promise<T> {
  if (signal?.aborted) throw reasonOf(signal);
  return new Promise<T>((resolve, reject) => {
    const abort = new AbortController();
    const giveUp = (reason: Error): void => {
      reject(reason);
      abortWith(abort, reason);
      done();
    };
    const leave = onAbort(signal, () => giveUp((signal && reasonOf(signal)) as Error));
    const timer = setTimeout(() => giveUp(new Lost('timeout', `no word within ${ms / 1_000} s`)), ms);
    const done = (): void => {
      clearTimeout(timer);
      leave();
    };
    what(abort.signal).then(resolve, reject).finally(done);
  });
}

/** Resolves after so many milliseconds, or when `signal` is aborted; with undefined only then. */
export function sleep(ms: number | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = ms === undefined ? undefined : setTimeout(resolve, ms);
    onAbort(signal, () => {
      clearTimeout(timer);
      resolve();
    });
  });
}

// Waiting for others, but not for ever.

import { abort as abortWith, onAbort } from './abort.ts';
import { Lost } from './lost.ts';

/**
 * What `what` comes to, unless it takes too long ({@link Lost}) or `signal` is aborted: then it is told by the signal it was given, and
 * waited for no more, whether it listens or not. The time is that in which the machine is awake.
 */
export async function within<T>(ms: number | undefined, what: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal | null): Promise<T> {
  const abort = new AbortController();
  const timer = ms === undefined ? ms : setTimeout(() => abortWith(abort, new Lost('timeout', `no word within ${ms / 1_000} s`)), ms);
  const leave = onAbort(signal, (reason) => abortWith(abort, reason));
  try {
    const ended = new Promise<never>((_, reject) => onAbort(abort.signal, reject));
    return await (signal?.aborted ? ended : Promise.race([ended, what(abort.signal)]));
  } finally {
    clearTimeout(timer);
    leave(); // what came of it may be read for longer
  }
}

/** Resolves after so many milliseconds, or when `signal` is aborted; with undefined only then. */
export const sleep = (ms: number | undefined, signal: AbortSignal): Promise<void> => within(ms, () => new Promise<never>(() => undefined), signal).catch(() => undefined);

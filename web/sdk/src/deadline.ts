// Waiting for others, but not for ever.

/**
 * What `what` comes to, unless it takes too long or `signal` is aborted: then it is told by the signal it was given, and
 * waited for no more, whether it listens or not. The time is that in which the machine is awake.
 */
export function within<T>(ms: number, what: (signal: AbortSignal) => Promise<T>, signal?: AbortSignal): Promise<T> {
  if (signal?.aborted) return Promise.reject(errorOf(signal.reason));
  return new Promise<T>((resolve, reject) => {
    const abort = new AbortController();
    const giveUp = (reason: Error): void => {
      reject(reason);
      abort.abort(reason);
      done();
    };
    const stop = (): void => giveUp(errorOf(signal?.reason));
    const timer = setTimeout(() => giveUp(new Error(`no answer within ${ms / 1_000} s`)), ms);
    const done = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', stop);
    };
    signal?.addEventListener('abort', stop);
    what(abort.signal).then(resolve, reject).finally(done);
  });
}

const errorOf = (reason: unknown): Error => (reason instanceof Error ? reason : new Error('aborted'));

/** Resolves after so many milliseconds, or when `signal` is aborted; with undefined only then. */
export function sleep(ms: number | undefined, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal.aborted) {
      resolve();
      return;
    }
    const wake = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', wake);
      resolve();
    };
    const timer = ms === undefined ? undefined : setTimeout(wake, ms);
    signal.addEventListener('abort', wake);
  });
}

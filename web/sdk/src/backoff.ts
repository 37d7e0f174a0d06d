// How long to wait before the next attempt. Ten thousand clients lose their streams in the same
// moment, so what the server does not spread itself has to be spread here.

/** Used where the server has not said `retry:` yet. */
const firstDelay = 1_000;
/** The exponential window grows up to here. */
const longestWindow = 30_000;
/** A server may ask for more than that, but not for silence without end. */
const longestDelay = 300_000;

export interface Wait {
  /** Attempts in a row that brought nothing. 0: the stream was healthy and has just ended. */
  readonly failures: number;
  /** The stream's last `retry:` in milliseconds. Kubecast gives each client its own, already spread. */
  readonly retry?: number | undefined;
  /** What a `Retry-After` header asks for, in milliseconds. */
  readonly retryAfter?: number | undefined;
}

/**
 * After a healthy stream: what the server told in `retry:`. For each failure after that a window twice
 * as wide, of which all is jitter ("full jitter"), on top of the server's `retry:` or `Retry-After`.
 */
export function backoff(wait: Wait, random: () => number = Math.random): number {
  const floor = Math.max(wait.retry ?? 0, wait.retryAfter ?? 0);
  const window = wait.failures || wait.retry === undefined ? Math.min(longestWindow, (wait.retry || firstDelay) * 2 ** wait.failures) : 0;
  return Math.min(floor + random() * window, longestDelay);
}

/** `Retry-After` in milliseconds: seconds or a date (RFC 9110); undefined if absent or neither. */
export function parseRetryAfter(header: string | null, now = Date.now()): number | undefined {
  const wait = /^\d+$/.test(header ?? '') ? Number(header) * 1_000 : Date.parse(header ?? '') - now;
  return Number.isNaN(wait) ? undefined : Math.max(0, wait);
}

// How far something can be trusted: the connection, and all that it brings.

/**
 * The same for a connection, a watch, a history, an inbox and an answer:
 *
 * - `loading`: nothing complete was received yet; `error` says why, if an attempt failed
 * - `live`: it is what the gateway knows, and that is up to date
 * - `stale`: it is old, or nobody knows whether it is; `reason` says why, and that is being mended
 * - `denied`: the caller may not see it (403), or is not signed in any more (401)
 * - `failed`: waiting does not mend it; `error` says why, as `closed` by the caller, or `http:404`
 */
export type Status = 'loading' | 'live' | 'stale' | 'denied' | 'failed';

/**
 * Why something is `stale`:
 *
 * - `catching-up`: the stream is open, and what was missed, or a new snapshot, is under way
 * - `reconnecting`: the stream is lost, or nobody knows whether it still stands; the client is waiting or trying, and `error` says why
 * - `paused`: the caller has let go of the stream for a while
 * - any other: the gateway's own, whose own watch on the API server is lost (`unreachable`, `refused`, `gone`), or has only begun (`starting`)
 */
export type StaleReason = 'catching-up' | 'reconnecting' | 'paused' | (string & {});

/** How far what is shown can be trusted. */
export interface Freshness {
  readonly status: Status;
  /** Undefined unless it is `stale`. */
  readonly reason: StaleReason | undefined;
  /** Where that is not now, as of when what is shown is, in milliseconds since the epoch; undefined if it is, or not known. */
  readonly asOf: number | undefined;
  /** Why it is `denied`, has `failed`, is not there yet, or no news comes, for programs and for people. */
  readonly error: Trouble | undefined;
}

/** How a stream is. `asOf`: when something was last heard of a gateway that was up to date. */
export interface ConnectionState extends Freshness {
  /** While the client waits, when the next attempt begins; undefined while one is under way. */
  readonly retryAt: number | undefined;
}

/** What nothing is known of yet. */
export const unknown: Freshness = { status: 'loading', reason: undefined, asOf: undefined, error: undefined };

/** What has gone wrong. */
export interface Trouble {
  /**
   * For programs: `network`, `silent`, `timeout`, `not-a-stream`, `no-address` (it is relative, outside of a browser), `no-body` (`fetch` has none to read), `ended`, `tabs` (too many streams of this browser), `goodbye:drain` and the
   * other reasons of goodbye, `http:503` and other statuses, `token` (the token callback failed, or does not answer),
   * `unreadable` (a frame was broken), `inconsistent`, `callback` (the caller's own code threw), `closed` (by the caller), `left-out` (of the stream,
   * which it seems to have ended; see {@link Kubecast.follow}).
   */
  readonly reason: string;
  /** The same for people, often the server's own words; may be empty. */
  readonly message: string;
}

/** Of what the caller has ended. */
export const closed: Trouble = { reason: 'closed', message: '' };

/** What all keys of `next` lead to is what they lead to in `old`. */
export function isSame<T extends object>(next: T, old: T): boolean {
  return (Object.keys(next) as (keyof T)[]).every((key) => next[key] === old[key]);
}

/** It is denied, or has failed: only another attempt of the user's, or a reload, helps. */
export function isFinal(state: { readonly status: Status | 'idle' }): boolean {
  return /denied|failed/.test(state.status);
}

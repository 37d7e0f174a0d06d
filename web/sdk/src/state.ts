// What a person should know about the connection.

/**
 * - `connecting`: the first attempts; nothing was received yet but refusals
 * - `live`: the stream is open, has said something, and the gateway itself is up to date
 * - `stale`: the stream is open, but the gateway has lost its own watch on the API server
 * - `reconnecting`: the stream is lost, or nobody knows whether it still stands; the client is waiting or trying
 * - `paused`: the caller has let go of the stream for a while
 * - `denied`: final; nobody is signed in any more (401) or may not see this (403)
 * - `closed`: final; closed by the caller, or there is nothing to come back to
 */
export type Phase = 'connecting' | 'live' | 'stale' | 'reconnecting' | 'paused' | 'denied' | 'closed';

/** How a stream is. */
export interface ConnectionState {
  readonly phase: Phase;
  /**
   * In milliseconds since the epoch. In `stale`, `reconnecting` and `paused`, as of when the data is: when something was last
   * heard of a gateway that was up to date. Else when the phase began.
   */
  readonly since: number;
  /**
   * Why, for programs: `network`, `silent`, `timeout`, `not-a-stream`, `no-address` (it is relative, outside of a browser), `no-body` (`fetch` has none to read), `ended`, `tabs` (too many streams of this browser), `goodbye:drain` and the
   * other reasons of goodbye, `http:503` and other statuses, `token` (the token callback failed, or does not answer),
   * `unreadable` (a frame was broken), `inconsistent`, `callback` (the caller's own code threw), `caller`.
   * For `stale`, the gateway's reason. Empty in `live` and at the start.
   */
  readonly reason: string;
  /** The same for people, often the server's own words; may be empty. */
  readonly message: string;
  /** In `reconnecting`, when the next attempt begins; undefined while one is under way. */
  readonly retryAt: number | undefined;
}

/** What all keys of `next` lead to is what they lead to in `old`. */
export function isSame<T extends object>(next: T, old: T): boolean {
  return (Object.keys(next) as (keyof T)[]).every((key) => next[key] === old[key]);
}

/** Nothing more comes: only another attempt of the user's, or a reload, helps. */
export function isFinal(state: ConnectionState): boolean {
  return /denied|closed/.test(state.phase);
}

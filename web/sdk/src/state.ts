// What a person should know about the connection.

/**
 * - `connecting`: the first attempts; nothing was received yet
 * - `live`: the stream is open and the gateway itself is up to date
 * - `stale`: the stream is open, but the gateway has lost its own watch on the API server
 * - `reconnecting`: the stream is lost, and the client is waiting or trying
 * - `denied`: final; nobody is signed in any more (401) or may not see this (403)
 * - `closed`: final; closed by the caller, or there is nothing to come back to
 */
export type Phase = 'connecting' | 'live' | 'stale' | 'reconnecting' | 'denied' | 'closed';

export interface ConnectionState {
  readonly phase: Phase;
  /** When the phase began, in milliseconds since the epoch. For `stale`, since when the data is old. */
  readonly since: number;
  /**
   * Why, for programs: `network`, `silent`, `timeout`, `not-a-stream`, `ended`, `goodbye:drain` and the
   * other reasons of goodbye, `http:503` and other statuses, `token` (the token callback failed),
   * `unreadable` (a frame was broken), `inconsistent`, `callback` (the caller's own code threw), `caller`.
   * For `stale`, the gateway's reason. Empty in `live` and at the start.
   */
  readonly reason: string;
  /** The same for people, often the server's own words; may be empty. */
  readonly message: string;
  /** In `reconnecting`, when the next attempt begins; undefined while one is under way. */
  readonly retryAt: number | undefined;
}

export function isFinal(state: ConnectionState): boolean {
  return state.phase === 'denied' || state.phase === 'closed';
}

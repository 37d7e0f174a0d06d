// What a client of one stream is told.

import type { Connect } from './connection.ts';
import type { TokenSource } from './credentials.ts';
import type { StreamEvent } from './events.ts';
import type { Frame } from './parser.ts';
import type { ConnectionState } from './state.ts';

/** What a client follows, and as whom. */
export interface ClientOptions {
  readonly url: string;
  /** `frame` is the event as it was sent. */
  readonly onEvent: (event: StreamEvent, frame: Frame) => void;
  readonly onState?: ((state: ConnectionState) => void) | undefined;
  /** A stream of this address is open, before its first event. `resumed`: from a position, so without a snapshot. */
  readonly onOpen?: ((resumed: boolean, url: string, behind: boolean) => void) | undefined;
  /** Without it requests carry the browser's cookie, or nothing. */
  readonly token?: TokenSource | undefined;
  /**
   * As `token`, for the browser's cookie: what it returns is not sent, but tells one session from the next, and undefined
   * says that there is none. Without effect beside `token`. See {@link Session.source}.
   */
  readonly session?: TokenSource | undefined;
  readonly lastEventId?: string | undefined;
  /** As of when what is known at that position is, in milliseconds since the epoch. */
  readonly asOf?: number | undefined;
  /** The longest silence that is asked of the server, in milliseconds, from 5 to 60 s; 2.5 times that is death. */
  readonly heartbeat?: number | undefined;
  /** How long an attempt may wait for a token, and for the response's head, in milliseconds. */
  readonly openTimeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  /** Shares its stream with others; by default it has one of its own. See `tabs` in `@kubecast/sdk/tabs`. */
  readonly share?: Share | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly random?: (() => number) | undefined;
}

/** Given all that a stream would need to be opened, says how one that is shared is. */
export type Share = (options: Omit<ClientOptions, 'url' | 'onEvent'>) => Connect;

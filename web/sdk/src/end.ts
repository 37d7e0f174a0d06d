// Why a stream ended, and what follows from it.

import { Lost, Refused } from './connection.ts';
import { UnreadableFrame } from './events.ts';

export type End =
  | {
      readonly kind: 'again';
      /** Nothing came of the attempt, so the next one waits longer. */
      readonly failed: boolean;
      readonly reason: string;
      readonly message: string;
      readonly retryAfter?: number | undefined;
    }
  | {
      readonly kind: 'final';
      readonly phase: 'denied' | 'closed';
      readonly reason: string;
      readonly message: string;
    };

/** The caller's own code threw; going on would lose events in silence. */
export class CallbackFailed extends Error {
  override readonly name = 'CallbackFailed';
}

/** The token callback threw or rejected. Its source may come back. */
export class TokenFailed extends Error {
  override readonly name = 'TokenFailed';
}

/** The caller asked for everything anew. */
export class StartedOver extends Error {}

/** The attempt is broken off, and the next one follows at once. */
export class Again extends Error {}

/** The server's last frame. */
export class Goodbye extends Error {
  override readonly name = 'Goodbye';
  readonly reason: string;

  constructor(reason: string) {
    super('');
    this.reason = reason;
  }
}

// Goodbyes that mean "not now": met with growing patience even if events came before them.
const overload = new Set(['limit', 'unavailable']);
// Client errors that heal by waiting.
const passing = new Set([408, 425, 429]);

/** @param delivered whether the connection brought any event before it ended */
export function endOf(error: unknown, delivered: boolean): End {
  const message = error instanceof Error ? error.message : String(error);
  const again = (reason: string, failed = !delivered): End => ({ kind: 'again', failed, reason, message });
  if (error instanceof Goodbye) {
    return again(`goodbye:${error.reason}`, !delivered || overload.has(error.reason));
  }
  if (error instanceof Lost) return again(error.reason);
  if (error instanceof TokenFailed) return again('token', true);
  if (error instanceof UnreadableFrame) return again('unreadable', true);
  if (error instanceof StartedOver) return again('inconsistent', true);
  if (error instanceof Refused) {
    const { status, retryAfter } = error;
    const reason = `http:${status}`;
    if (status === 401 || status === 403) return { kind: 'final', phase: 'denied', reason, message };
    if (status === 204 || (status >= 400 && status < 500 && !passing.has(status))) {
      return { kind: 'final', phase: 'closed', reason, message };
    }
    return { kind: 'again', failed: true, reason, message, retryAfter };
  }
  return { kind: 'final', phase: 'closed', reason: 'callback', message };
}

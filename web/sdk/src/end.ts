// Why a stream ended, and what follows from it.

import { UnreadableFrame } from './events.ts';
import { Lost, Refused, textOf } from './lost.ts';

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
export class CallbackFailed extends Error {}

/** The attempt is broken off, and the next one follows at once. */
export class Again extends Error {}

/** The server's last frame. */
export class Goodbye extends Error {
  readonly reason: string;

  constructor(reason: string) {
    super('');
    this.reason = reason;
  }
}

// Goodbyes that mean "not now": met with growing patience even if events came before them.
export const isOverload = (reason: string): boolean => /^(limit|unavailable)$/.test(reason);
// Client errors that heal by waiting.
const passing = [408, 425, 429];

/** @param delivered whether the connection brought any event before it ended */
export function endOf(error: unknown, delivered: boolean): End {
  const message = textOf(error);
  const again = (reason: string, failed = !delivered): End => ({ kind: 'again', failed, reason, message });
  const final = (phase: 'denied' | 'closed', reason: string): End => ({ kind: 'final', phase, reason, message });
  if (error instanceof Goodbye) {
    return again(`goodbye:${error.reason}`, !delivered || isOverload(error.reason));
  }
  if (error instanceof Lost) return again(error.reason, !delivered || error.reason === 'inconsistent');
  if (error instanceof UnreadableFrame) return again('unreadable', true);
  if (error instanceof Refused) {
    const { status, retryAfter } = error;
    const reason = `http:${status}`;
    if (status === 401 || status === 403) return final('denied', reason);
    if (status === 204 || (status >= 400 && status < 500 && !passing.includes(status))) return final('closed', reason);
    return { ...again(reason, true), retryAfter } as End;
  }
  return final('closed', 'callback');
}

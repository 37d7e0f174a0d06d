// Why a stream ended, and what follows from it.

import { UnreadableFrame } from './events.ts';
import { finalOf, Lost, Refused, textOf } from './lost.ts';

export interface End {
  readonly reason: string;
  readonly message: string;
  /** It is final; undefined: another attempt follows. */
  readonly status?: 'denied' | 'failed' | undefined;
  /** Nothing came of the attempt, so the next one waits longer. */
  readonly failed?: boolean | undefined;
  readonly retryAfter?: number | undefined;
}

/** The attempt is broken off, and the next one follows at once. */
export const again = new Error();

/** The server's last frame. */
export const goodbye = (reason: string): Lost => new Lost(`goodbye:${reason}`, '');

/** What means "not now", of a goodbye or of an end: met with growing patience even if events came before it. */
export const isOverload = (reason: string): boolean => /^(goodbye:)?(limit|unavailable|inconsistent)$/.test(reason);

/**
 * @param delivered whether the connection brought any event before it ended
 */
export function endOf(error: unknown, delivered: boolean): End {
  const message = textOf(error);
  if (error instanceof Lost) {
    const { reason } = error;
    return { reason, message, status: /^(no-|callback)/.test(reason) ? 'failed' : undefined, failed: !delivered || isOverload(reason) };
  }
  if (error instanceof UnreadableFrame) return { reason: 'unreadable', message, failed: true };
  if (!(error instanceof Refused)) return { reason: 'callback', message, status: 'failed' };
  const reason = `http:${error.status}`;
  return { reason, message, status: finalOf(reason), failed: true, retryAfter: error.retryAfter };
}

// Why a stream ended, and what follows from it.

import { finalOf, Lost } from './lost.ts';

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
export const again = new Lost('again', '');

/** The server's last frame. */
export const goodbye = (reason: string): Lost => new Lost(`goodbye:${reason}`, `the stream ended: ${reason}`);

/** What means "not now", of a goodbye or of an end: met with growing patience even if events came before it. */
export const isOverload = (reason: string): boolean => /^(goodbye:)?(limit|unavailable|inconsistent)$/.test(reason);

/**
 * @param delivered whether the connection brought any event before it ended
 */
export function endOf({ reason, message, retryAfter }: Lost, delivered: boolean): End {
  const failed = !delivered || /^(http:|unreadable)/.test(reason) || isOverload(reason);
  return { reason, message, status: /^(no-|callback)/.test(reason) ? 'failed' : finalOf(reason), failed, retryAfter };
}

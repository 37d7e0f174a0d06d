// The connection's state in words.

import type { ConnectionState, Freshness } from '@kubecast/sdk';
import { t } from './texts.ts';

export interface Description {
  readonly tone: 'live' | 'waiting' | 'stale' | 'lost';
  readonly label: string;
  /** A sentence for whoever wants to know more. */
  readonly detail: string;
}

/** Something that nobody has asked for until now is being read by the gateway: it is missing yet, and nothing that is shown is old. */
export function isStarting({ reason }: ConnectionState): boolean {
  return reason === 'starting';
}

/** Something is old since the gateway, or what is behind it, is away, and nobody knows for how long. */
export function isAway({ status, reason }: Pick<Freshness, 'status' | 'reason'>): boolean {
  return status === 'stale' && reason !== 'paused' && reason !== 'catching-up';
}

/** `behind`: the rows on screen are older than the connection. */
export function describe(state: ConnectionState, formatTime: (time: number) => string, behind = false): Description {
  const { reason = '', message = '' } = state.error ?? {};
  const why = t.reasons[reason] ?? message;
  switch (state.status) {
    case 'live':
      if (behind) return { tone: 'waiting', label: t.catchingUp, detail: t.catchingUpWhy };
      return { tone: 'live', label: t.live, detail: t.liveWhy };
    case 'loading':
      return { tone: 'waiting', label: t.connecting, detail: reason === '' ? '' : why };
    case 'stale': {
      if (isStarting(state)) return { tone: 'waiting', label: t.loading, detail: t.loadingWhy };
      if (state.asOf === undefined) return { tone: 'waiting', label: t.connecting, detail: '' };
      const at = formatTime(state.asOf);
      if (state.reason === 'reconnecting') return { tone: 'lost', label: t.reconnecting(at), detail: why };
      if (state.reason === 'paused') return { tone: 'waiting', label: t.paused(at), detail: t.pausedWhy };
      return { tone: 'stale', label: t.stale(at), detail: t.staleWhy };
    }
    case 'denied':
      return { tone: 'lost', label: reason === 'http:401' ? t.signedOut : t.notAllowed, detail: message };
    case 'failed':
      return { tone: 'lost', label: t.disconnected, detail: why };
  }
}

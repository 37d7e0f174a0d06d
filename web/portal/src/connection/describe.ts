// The connection's state in words.

import type { ConnectionState } from '@kubecast/sdk';
import { t } from './texts.ts';

export interface Description {
  readonly tone: 'live' | 'waiting' | 'stale' | 'lost';
  readonly label: string;
  /** A sentence for whoever wants to know more. */
  readonly detail: string;
}

/** Something that nobody has asked for until now is being read by the gateway: it is missing yet, and nothing that is shown is old. */
export function isStarting({ phase, reason }: ConnectionState): boolean {
  return phase === 'stale' && reason === 'starting';
}

/** `behind`: the rows on screen are older than the connection. */
export function describe(state: ConnectionState, formatTime: (time: number) => string, behind = false): Description {
  const why = t.reasons[state.reason] ?? state.message;
  switch (state.phase) {
    case 'live':
      if (behind) return { tone: 'waiting', label: t.catchingUp, detail: t.catchingUpWhy };
      return { tone: 'live', label: t.live, detail: t.liveWhy };
    case 'connecting':
      return { tone: 'waiting', label: t.connecting, detail: state.reason === '' ? '' : why };
    case 'reconnecting':
      return { tone: 'lost', label: t.reconnecting(formatTime(state.since)), detail: why };
    case 'paused':
      return { tone: 'waiting', label: t.paused(formatTime(state.since)), detail: t.pausedWhy };
    case 'stale':
      if (isStarting(state)) return { tone: 'waiting', label: t.loading, detail: t.loadingWhy };
      return { tone: 'stale', label: t.stale(formatTime(state.since)), detail: t.staleWhy };
    case 'denied':
      return { tone: 'lost', label: state.reason === 'http:401' ? t.signedOut : t.notAllowed, detail: state.message };
    case 'closed':
      return { tone: 'lost', label: t.disconnected, detail: why };
  }
}

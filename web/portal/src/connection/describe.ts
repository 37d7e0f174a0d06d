// The connection's state in words.

import type { ConnectionState } from '@kubecast/sdk';

export interface Description {
  readonly tone: 'live' | 'waiting' | 'stale' | 'lost';
  readonly label: string;
  /** A sentence for whoever wants to know more. */
  readonly detail: string;
}

const reasons: Record<string, string> = {
  ended: 'The gateway ended the stream.',
  network: 'The gateway cannot be reached.',
  silent: 'The gateway has fallen silent.',
  timeout: 'The gateway does not answer.',
  'not-a-stream': 'Something between here and the gateway answered in its place.',
  token: 'The sign-in cannot be renewed at the moment.',
  unreadable: 'The gateway sent something that could not be read.',
  inconsistent: 'Something was missed; everything is being fetched anew.',
  callback: 'The portal itself has failed.',
  'goodbye:drain': 'The gateway is being restarted.',
  'goodbye:age': 'The gateway renews old connections.',
  'goodbye:expired': 'The sign-in has expired.',
  'goodbye:revoked': 'Permissions have changed.',
  'goodbye:limit': 'The gateway has too many connections.',
  'goodbye:unavailable': 'The gateway has no connection to the cluster.',
  'goodbye:gone': 'What was shown is no longer served.',
};

/** `behind`: the rows on screen are older than the connection. */
export function describe(state: ConnectionState, formatTime: (time: number) => string, behind = false): Description {
  const why = reasons[state.reason] ?? state.message;
  switch (state.phase) {
    case 'live':
      if (behind) return { tone: 'waiting', label: 'Catching up…', detail: 'What is shown is being fetched anew.' };
      return { tone: 'live', label: 'Live', detail: 'Changes appear as they happen.' };
    case 'connecting':
      return { tone: 'waiting', label: 'Connecting…', detail: state.reason === '' ? '' : why };
    case 'reconnecting':
      return { tone: 'lost', label: `Reconnecting, as of ${formatTime(state.since)}`, detail: why };
    case 'paused':
      return { tone: 'waiting', label: `Paused, as of ${formatTime(state.since)}`, detail: 'Updates go on when this page is looked at.' };
    case 'stale':
      return { tone: 'stale', label: `Stale since ${formatTime(state.since)}`, detail: 'The gateway has lost its connection to the cluster.' };
    case 'denied':
      return { tone: 'lost', label: state.reason === 'http:401' ? 'Signed out' : 'Not allowed', detail: state.message };
    case 'closed':
      return { tone: 'lost', label: 'Disconnected', detail: why };
  }
}

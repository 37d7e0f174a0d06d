// The connection by which all comes that is on screen.

import type { ConnectionState, Kubecast } from '@kubecast/sdk';

/** A value to read and to subscribe to, as useSyncExternalStore wants it. */
export interface Observable<T> {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => T;
}

const connecting: ConnectionState = { status: 'loading', reason: undefined, asOf: undefined, error: undefined, retryAt: undefined };

/** Before anything is asked for it is about to be. */
export function connectionOf({ connection }: Kubecast): Observable<ConnectionState> {
  return { subscribe: connection.subscribe, getSnapshot: () => connection.getSnapshot() ?? connecting };
}

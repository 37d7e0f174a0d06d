import type { ConnectionState, Watch } from '@kubecast/sdk';
import { useSyncExternalStore, type ReactNode } from 'react';
import { formatDuration, formatTime } from '../texts/format.ts';
import { useNow } from '../age/clock.ts';
import type { Observable } from './connection.ts';
import { describe, isAway } from './describe.ts';
import { t } from './texts.ts';
import './connection.css';

interface ConnectionStatusProps {
  readonly connection: Observable<ConnectionState>;
  /** What is on screen is of several clusters, each of which says by itself that it is away. */
  readonly apart?: boolean;
  /** What is on screen; undefined: it says by itself how far it can be trusted. */
  readonly rows: Pick<Watch<unknown>, 'subscribe' | 'getSnapshot'> | undefined;
  readonly onRetry: () => void;
}

/** How far what is on screen can be trusted, in words; the dot only repeats them. */
export function ConnectionStatus({ connection, apart, rows, onRetry }: ConnectionStatusProps): ReactNode {
  const known = useSyncExternalStore(connection.subscribe, connection.getSnapshot);
  const state: ConnectionState = apart && isAway(known) && known.reason !== 'reconnecting' ? { ...known, status: 'live' } : known;
  const reason = useSyncExternalStore(rows?.subscribe ?? never, () => rows?.getSnapshot().reason);
  const { tone, label, detail } = describe(state, formatTime, reason === 'catching-up');
  return (
    <div className={`connection connection-${tone}`}>
      <span className="connection-dot" aria-hidden="true" />
      <span role="status" className="connection-label" title={detail} data-status={state.status} data-reason={state.reason}>
        {label}
      </span>
      {state.retryAt !== undefined && <Retry at={state.retryAt} onRetry={onRetry} />}
    </div>
  );
}

const never = (): (() => void) => () => undefined;

/** Outside of the status: a countdown must not be read out every second. */
function Retry({ at, onRetry }: { at: number; onRetry: () => void }): ReactNode {
  const seconds = Math.max(0, Math.ceil((at - useNow()) / 1_000));
  return (
    <>
      {seconds > 1 && <span className="connection-wait">{t.againIn(formatDuration(seconds * 1_000))}</span>}
      <button type="button" className="button button-small" onClick={onRetry}>
        {t.tryNow}
      </button>
    </>
  );
}

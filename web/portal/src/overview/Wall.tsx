// The overview on a screen that hangs somewhere: nothing but what is there now, large, the time, and at once whether it is of now.

import { useConnection } from '@kubecast/sdk/react';
import { useEffect, useLayoutEffect, useRef, type ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { useServed } from '../clusters/served.ts';
import { describe, isStarting } from '../connection/describe.ts';
import { formatDay, formatTime } from '../texts/format.ts';
import { formatView, type View } from '../view/view.ts';
import { fit } from './fit.ts';
import { t } from './texts.ts';
import './wall.css';

/** What `tab` of the overview's address says for it. */
export const wallTab = 'wall';

export function Wall({ view, why, children }: { readonly view: View; /** Why a part of it is old, beside the connection. */ readonly why: string | undefined; readonly children: ReactNode }): ReactNode {
  useLayoutEffect(() => {
    document.documentElement.dataset.wall = '';
    return () => {
      delete document.documentElement.dataset.wall;
    };
  }, []);
  useEffect(keepAwake, []);
  const wall = useRef<HTMLDivElement>(null);
  useLayoutEffect(() => (wall.current ? fit(wall.current) : undefined), []);
  const served = useServed();
  // The header, which has the choice of clusters, is not there.
  const cluster = served.length > 1 ? view.cluster || served.find((one) => one.default)?.name : undefined;
  return (
    <div className="wall" ref={wall}>
      <header className="wall-top">
        <h1>
          {view.namespace === '' ? t.title : <span translate="no">{view.namespace}</span>}
          {cluster !== undefined && (
            <>
              {' · '}
              <span translate="no">{cluster}</span>
            </>
          )}
        </h1>
        <Clock />
        <a className="wall-leave" href={formatView({ ...view, tab: '' })}>
          {t.leaveWall}
        </a>
      </header>
      <Freshness why={why} />
      {children}
    </div>
  );
}

function Clock(): ReactNode {
  const now = useNow();
  return (
    <p className="wall-clock">
      <span>{formatDay(now)}</span> <time dateTime={new Date(now).toISOString()}>{formatTime(now)}</time>
    </p>
  );
}

/** There at once, unlike what other pages say: nobody who walks by can tell a number of now from one of an hour ago. */
function Freshness({ why }: { readonly why: string | undefined }): ReactNode {
  const state = useConnection();
  const now = useNow();
  const said = state && state.status !== 'live' && !isStarting(state) ? describe(state, formatTime) : undefined;
  const label = said?.label ?? why;
  const minutes = state?.asOf === undefined ? 0 : Math.floor((now - state.asOf) / 60_000);
  return (
    <div role="alert" className="wall-fresh">
      {label !== undefined && (
        <p data-tone={said?.tone ?? 'stale'}>
          <strong>{label}</strong> {said?.detail} {said && minutes > 0 && <span aria-hidden="true">{t.oldFor(minutes)}</span>}
        </p>
      )}
    </div>
  );
}

interface Lock {
  readonly release: () => Promise<void>;
}

/** Asks the browser to leave the screen on; one that cannot or will not does as it is set up. */
function keepAwake(): (() => void) | undefined {
  const { wakeLock } = navigator as { readonly wakeLock?: { readonly request: (type: 'screen') => Promise<Lock> } };
  if (!wakeLock) return undefined;
  let held: Lock | undefined;
  let over = false;
  const take = (): void => {
    if (document.visibilityState !== 'visible') return; // it is lost while hidden
    void wakeLock.request('screen').then(
      (lock) => {
        if (over) void lock.release();
        else held = lock;
      },
      () => undefined,
    );
  };
  take();
  document.addEventListener('visibilitychange', take);
  return () => {
    over = true;
    document.removeEventListener('visibilitychange', take);
    void held?.release();
  };
}

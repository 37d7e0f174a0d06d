// What is on screen while it is not live: dimmed, its ages stopped, and said to be old in words.

import type { ConnectionState } from '@kubecast/sdk';
import { useConnection } from '@kubecast/sdk/react';
import { createContext, useContext, useEffect, useState, type ReactNode } from 'react';
import { AsOf } from '../age/Age.tsx';
import { formatTime } from '../texts/format.ts';
import { describe, isAway, isStarting } from './describe.ts';
import { t } from './texts.ts';
import './connection.css';

interface DatedProps {
  /** As of when it is; undefined: as of now, or nobody knows. */
  readonly asOf: number | undefined;
  /** Why it is old; undefined: it is not. */
  readonly why: string | undefined;
  readonly children: ReactNode;
}

export function Dated({ asOf, why, children }: DatedProps): ReactNode {
  const shown = useLasting(why);
  const around = useContext(AsOf);
  return (
    <AsOf value={why === undefined ? around : asOf}>
      {/* There at all times, or what is put into it later is not read out. */}
      <div role="status">
        {shown !== undefined && (
          <p className="dated-why">
            {asOf === undefined ? t.old : t.asOf(formatTime(asOf))} {shown}
          </p>
        )}
      </div>
      <div className="dated" data-dated={shown !== undefined || undefined}>
        {children}
      </div>
    </AsOf>
  );
}

/** What is shown is of several clusters, each of which says by itself that it is away. */
const Apart = createContext(false);

/** Around every page: all of them come by one connection. */
export function DatedByConnection({ apart = false, children }: { apart?: boolean; children: ReactNode }): ReactNode {
  return (
    <Apart value={apart}>
      <ByConnection>{children}</ByConnection>
    </Apart>
  );
}

function ByConnection({ children }: { children: ReactNode }): ReactNode {
  const away = useAway();
  return (
    <Dated asOf={away?.asOf} why={away && describe(away, formatTime).detail}>
      {children}
    </Dated>
  );
}

/** What the connection is like while it, or the cluster behind it, is away; undefined while it is not. What else is old is told by a page only then. */
export function useAway(): ConnectionState | undefined {
  const state = useConnection();
  const apart = useContext(Apart);
  return state && isAway(state) && !isStarting(state) && !(apart && state.reason !== 'reconnecting') ? state : undefined;
}

/** In milliseconds: a stream that is back after a moment is no news. */
const moment = 1_000;

/** A text once it has been there for a while, whatever it says by then. */
function useLasting(text: string | undefined): string | undefined {
  const [lasts, setLasts] = useState(false);
  const there = text !== undefined;
  useEffect(() => {
    if (!there) return undefined;
    const timer = setTimeout(() => setLasts(true), moment);
    return () => {
      clearTimeout(timer);
      setLasts(false);
    };
  }, [there]);
  return lasts ? text : undefined;
}

// How long a job waited and ran, on all pages: as the gateway says it, and nothing where it does not know.

import type { Elapsed, PastJob, Transition } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from './Age.tsx';
import { formatDuration } from '../texts/format.ts';
import { t } from './texts.ts';

interface LastedProps {
  readonly of: Elapsed | undefined;
  /** It is known to have lasted so long, and may have lasted longer. */
  readonly least?: boolean;
  /** Says why beside it, where there is room. */
  readonly why?: boolean;
}

/** It ticks while it goes on. */
export function Lasted({ of, least = false, why = false }: LastedProps): ReactNode {
  if (!of) return <span className="none">–</span>;
  const lasted = of.since === undefined ? <span>{formatDuration(of.over)}</span> : <Age since={of.since - of.over} />;
  return least ? <span title={t.least}>≥ {lasted}{why && t.seenLate}</span> : lasted;
}

/** Where the answer is still coming. */
export const NotYet = (): ReactNode => <span className="none">…</span>;

/** Nobody saw when it began, so it may have run for longer than the history knows. */
export const ranLonger = (past: Times | undefined): boolean => past?.ran !== undefined && past.waited === undefined;

type Times = Pick<PastJob, 'waited' | 'ran'>;

const ends = new Set(['Succeeded', 'Failed', 'Cancelled', 'Deleted']);
const over = (of: Elapsed | undefined, at: number): Elapsed | undefined => of && (of.since === undefined ? of : { over: of.over + Math.max(0, at - of.since), since: undefined });

/** The times of a job after a transition that was told since it was read. */
export function timesAfter({ waited, ran }: Times, { to, at, late }: Pick<Transition, 'to' | 'at' | 'late'>): Times {
  // Only the gateway knows whether the object claims when a run ended that was found late.
  const stopped = late && ran?.since !== undefined && to !== 'Running' ? undefined : over(ran, at);
  if (to === 'Running') return { waited: late && waited?.since !== undefined ? undefined : over(waited, at), ran: { over: stopped?.over ?? 0, since: at } };
  if (!ends.has(to)) return { waited, ran: stopped };
  const unseen = waited?.since !== undefined && (late || to === 'Succeeded');
  return { waited: unseen ? undefined : over(waited, at), ran: stopped };
}

/** The times of a job that says itself that it ended, and of which the history has not said so yet. Whether it ran meanwhile is not known. */
export function timesUntil({ waited, ran }: Times, end: number): Times {
  return { waited: waited?.since === undefined ? waited : undefined, ran: over(ran, end) };
}

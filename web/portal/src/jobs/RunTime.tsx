// How long jobs ran, for tables whose rows are the cluster's objects: as the history says it. Where it does not know a job, and where none is
// kept, it is what the object says.

import type { Elapsed, PastJob } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Lasted, NotYet, ranLonger, timesUntil } from '../age/Elapsed.tsx';
import { ranSince, type JobRow } from './job.ts';
import { usePast } from './past.tsx';

type Times = Pick<PastJob, 'uid' | 'waited' | 'ran'> & Partial<Pick<PastJob, 'state'>>;

/** The times of a job that is there: as the history has them, but for a beginning or an end of which it has not heard yet; without it, what the object says of itself. */
export function timesOf(row: JobRow<string>, past: Times | undefined): Pick<PastJob, 'waited' | 'ran'> {
  if (past?.uid !== row.uid) return { waited: undefined, ran: claimed(row) };
  if (row.finished !== undefined) return timesUntil(past, row.finished);
  const since = ranSince(row);
  // It has begun, and the history has not heard so yet.
  if (row.state === 'Running' && since !== undefined && past.ran?.since === undefined && beforeRunning.has(past.state ?? '')) {
    return { waited: past.waited?.since === undefined ? past.waited : undefined, ran: { over: past.ran?.over ?? 0, since } };
  }
  return past;
}

const beforeRunning = new Set(['Submitted', 'Queued', 'Suspended', 'Pending', 'Retrying']);

function claimed(row: JobRow<string>): Elapsed | undefined {
  const since = ranSince(row);
  if (since === undefined) return undefined;
  return row.finished === undefined ? { over: 0, since } : { over: Math.max(0, row.finished - since), since: undefined };
}

export function RunTime({ row }: { readonly row: JobRow<string> }): ReactNode {
  const { past, coming } = usePast(row);
  if (coming && !past) return <NotYet />;
  return <Lasted of={timesOf(row, past).ran} least={past?.uid === row.uid && ranLonger(past)} />;
}

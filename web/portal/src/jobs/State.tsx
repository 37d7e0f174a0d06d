// A job's state in a table whose rows are the cluster's objects, and why it came to that, as the history knows it.

import type { ReactNode } from 'react';
import { PlaceOf } from '../queues/places.tsx';
import { causeName } from '../state/causes.ts';
import { StateMark } from '../state/StateMark.tsx';
import { whyNow } from '../state/why.ts';
import type { JobRow } from './job.ts';
import { usePast } from './past.tsx';

const explained = new Set(['Failed', 'Retrying', 'Queued', 'Pending']);

const inFull = (...said: readonly string[]): string => said.filter(Boolean).join(' · ');

/** What is told in words is told in the cluster's own beside its message. */
export function inWords<R extends Pick<JobRow<string>, 'state' | 'detail' | 'message'>>(row: R): R {
  const words = row.state === 'Failed' ? causeName(row.detail) : row.detail;
  return words === row.detail ? row : { ...row, detail: words, message: inFull(row.detail, row.message) };
}

/**
 * All failures have one of three reasons in the words of their controller, so what the history says
 * comes first. Until it has answered, no reason is said: it would be taken back.
 */
function withWhy(row: JobRow<string>, { past, coming }: ReturnType<typeof usePast>): Pick<JobRow<string>, 'state' | 'detail' | 'message'> {
  const { state, detail, message } = row;
  const why = past?.state === state && explained.has(state) ? whyNow(past) : '';
  if (coming && state === 'Failed' && !why) return { state, detail: '', message: inFull(detail, message) };
  if (!why) return inWords(row);
  if (state !== 'Failed') return { state, detail: [detail, why].filter(Boolean).join(' · '), message };
  return past?.cause ? { state, detail: why, message: inFull(detail, message) } : inWords(row);
}

export function State({ row }: { readonly row: JobRow<string> }): ReactNode {
  return (
    <span className="placed-state">
      <StateMark {...withWhy(row, usePast(row))} />
      {row.state === 'Queued' && <PlaceOf uid={row.uid} />}
    </span>
  );
}

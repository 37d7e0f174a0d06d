import type { Cause, PastJob } from '@kubecast/sdk';
import { outcomeOf } from '../history/outcome.ts';

/** Why a job came to a state, in one line: its cause, where that is known; else what its object says. */
export const whyOf = ({ cause, reason, message }: { readonly cause?: Cause | undefined; readonly reason: string; readonly message: string }): string =>
  cause?.text ?? [reason, message].filter(Boolean).join(': ');

/** The same of a job as it is now: one that waits again is told for what, and then why it came to that. That all went well needs no reason. */
export const whyNow = (job: Pick<PastJob, 'state' | 'durations' | 'since' | 'cause' | 'reason' | 'message' | 'reasons'>): string => {
  if (outcomeOf(job) === 'Succeeded') return '';
  const why = whyOf(job);
  const waits = job.state === 'Queued' || job.state === 'Retrying';
  const last = job.reasons.at(-1);
  if (!waits || !job.cause || !job.reason || last?.reason !== job.reason || last.at <= job.since) return why;
  return `${whyOf({ reason: job.reason, message: job.message })} · ${why}`;
};

import type { Cause, PastJob } from '@kubecast/sdk';
import { outcomeOf } from '../history/outcome.ts';
import { causeName } from './causes.ts';
import { saidOf, saidOfWait, wordsOf } from './said.ts';

/** Why a job came to a state, in one line: its cause, where that is known; else what its object says. */
export const whyOf = ({ cause, reason, message }: { readonly cause?: Cause | undefined; readonly reason: string; readonly message: string }): string => {
  const text = [reason, message].filter(Boolean).join(': ');
  return cause ? saidOf(cause) : (wordsOf(text, reason) ?? saidOfWait(text));
};

type Waiting = Pick<PastJob, 'state' | 'durations' | 'since' | 'cause' | 'reason' | 'message' | 'reasons'>;

/** What is said of why a job waits, in the gateway's words where it has them. */
const inWords = ({ reason, message, reasons }: Pick<PastJob, 'reason' | 'message' | 'reasons'>): string => {
  const last = reasons.at(-1);
  const text = last?.reason === reason && last.message === message ? last.text : undefined;
  return whyOf({ reason, message: text && text !== reason ? text : message });
};

/** The same of a job as it is now: one that waits again is told for what, and then why it came to that. That all went well needs no reason. */
export const whyNow = (job: Waiting): string => {
  if (outcomeOf(job) === 'Succeeded') return '';
  const why = job.cause ? saidOf(job.cause) : inWords(job);
  const waits = job.state === 'Queued' || job.state === 'Retrying';
  const last = job.reasons.at(-1);
  if (!waits || !job.cause || !job.reason || last?.reason !== job.reason || last.at <= job.since) return why;
  return `${inWords(job)} · ${why}`;
};

const waiting = new Set(['Queued', 'Pending', 'Retrying']);

/** The same in a row of a table: for what a job waits in words, and else in short. */
export const whyInRow = (job: Waiting): string => {
  const state = outcomeOf(job);
  if (waiting.has(state)) return whyNow(job);
  if (state === 'Succeeded') return '';
  return job.cause ? saidOf(job.cause) : causeName(job.reason);
};

/** What its object says, where that is not all in whyNow. */
export const saidInFull = (job: Waiting): string => (outcomeOf(job) !== 'Succeeded' && job.message && !whyNow(job).includes(job.message) && !job.cause ? job.message : '');

/** So long after a job ended more may be found out of why, in milliseconds. */
const causesCome = 130_000;

/** Whether it is found out still why it ended: what says so is read beside the job, and may come after its end. */
export const mayBeExplained = ({ state, cause, since }: Pick<PastJob, 'state' | 'cause' | 'since'>): boolean =>
  (state === 'Failed' || state === 'Cancelled') && !cause?.pod && Date.now() - since <= causesCome;

/** Until it is asked again, in milliseconds. */
export const untilExplained = 4_000;

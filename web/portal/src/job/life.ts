// The states of one job, out of those of all jobs that ever had its name.

import type { PastJob, Transition } from '@kubecast/sdk';

export interface Life {
  /** The oldest first. */
  readonly transitions: readonly Transition[];
  /** How many other jobs had this name. */
  readonly others: number;
}

/** The life of the job with this uid; without one, or if nothing of it was recorded yet and it is not known to be there, of the newest. */
export function latestLife(all: readonly Transition[], uid: string | undefined): Life {
  const uids = new Set(all.map((transition) => transition.uid));
  const of = uid ?? all.at(-1)?.uid;
  return { transitions: all.filter((transition) => transition.uid === of), others: uids.size - (of !== undefined && uids.has(of) ? 1 : 0) };
}

/** The states in which a job has a cause. */
const caused = new Set(['Failed', 'Retrying', 'Cancelled', 'Queued']);

/** With what was found out of its end after that was told: a transition is told once. */
export function withCause(life: Life, past: Pick<PastJob, 'uid' | 'attempt' | 'cause'> | undefined): Life {
  const last = life.transitions.findLastIndex(({ to }) => to !== 'Deleted');
  const transition = life.transitions[last];
  if (!past?.cause || !transition || transition.cause || !caused.has(transition.to) || transition.uid !== past.uid || transition.attempt !== past.attempt) return life;
  return { ...life, transitions: life.transitions.with(last, { ...transition, cause: past.cause }) };
}

/** States after which a job goes nowhere by itself. */
export const ends = new Set(['Succeeded', 'Failed', 'Cancelled', 'Deleted']);

export interface Step extends Transition {
  /** When it went on to the next state; undefined: it is in this one, or this one is an end. */
  readonly until: number | undefined;
  /** How long it has been in this state is of interest. */
  readonly lasts: boolean;
  /** Nobody saw it come to this state, so it may have been in it for longer. */
  readonly least: boolean;
}

export function stepsOf(transitions: readonly Transition[]): readonly Step[] {
  return transitions.map((transition, n) => ({ ...transition, until: transitions[n + 1]?.at, lasts: !ends.has(transition.to), least: transition.late && !ends.has(transition.to) }));
}

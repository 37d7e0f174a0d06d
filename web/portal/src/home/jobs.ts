// The user's jobs, as the history has them: read anew when one of them has changed.

import { pastJobs, type Kubecast, type PastJob } from '@kubecast/sdk';
import { endOf } from '../history/outcome.ts';
import { inTurn } from '../clusters/together.ts';
import { jobs } from '../job/resources.ts';
import { Reading } from '../polling/polling.ts';
import { mayBeExplained, untilExplained } from '../state/why.ts';

export interface MyJobs {
  readonly running: readonly PastJob[];
  readonly waiting: readonly PastJob[];
  /** In the last week, the latest first. */
  readonly ended: readonly PastJob[];
  /** There are more than these. */
  readonly more: boolean;
}

const running = ['Running', 'Retrying'];
const waiting = ['Submitted', 'Queued', 'Suspended', 'Pending'];
const ended = ['Succeeded', 'Failed', 'Cancelled', 'Deleted'];

/** In milliseconds. */
const leastGap = 1_000;
/** Why a job waits is no change of its state, so it is looked at without one. */
const whileWaiting = 15_000;

const readings = new WeakMap<Kubecast, Reading<MyJobs>>();

/** Always the same one: who comes back to the page sees what they saw, until it is read anew. */
export function readingOf(kc: Kubecast): Reading<MyJobs> {
  const reading = readings.get(kc) ?? new Reading(() => inTurn(kc, () => read(kc)), leastGap, untilReadAgain);
  readings.set(kc, reading);
  return reading;
}

/** Until what no state says has changed, in milliseconds. */
export function untilReadAgain({ ended, waiting }: Pick<MyJobs, 'ended' | 'waiting'>): number | undefined {
  if (ended.some(mayBeExplained)) return untilExplained;
  return waiting.length > 0 ? whileWaiting : undefined;
}

/** Those of several clusters; undefined: nothing is known of any. */
export function joined(all: readonly MyJobs[]): MyJobs | undefined {
  if (all.length < 2) return all[0];
  const of = (which: 'running' | 'waiting' | 'ended', time: (job: PastJob) => number): PastJob[] => all.flatMap((one) => one[which]).sort((a, b) => time(b) - time(a));
  return { running: of('running', createdOf), waiting: of('waiting', createdOf), ended: of('ended', endOf), more: all.some(({ more }) => more) };
}

const createdOf = ({ createdAt }: PastJob): number => createdAt;

async function read(kc: Kubecast): Promise<MyJobs> {
  const mine = (states: readonly string[], limit: number, since?: string) => pastJobs(kc, jobs, { owner: 'me', states, limit, since });
  const [open, over] = await Promise.all([mine([...running, ...waiting], 500), mine(ended, 100, '168h')]);
  const of = (states: readonly string[]): PastJob[] => open.items.filter(({ state }) => states.includes(state));
  return { running: of(running), waiting: of(waiting), ended: [...over.items].sort((a, b) => endOf(b) - endOf(a)), more: open.more || over.more };
}

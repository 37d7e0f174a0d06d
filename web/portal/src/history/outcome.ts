import type { PastJob } from '@kubecast/sdk';

/** How a job ended. One that was removed afterwards, as by its time to live, ended no other way for that; if it has ended both ways, nobody knows which was last. */
export function outcomeOf({ state, durations }: Pick<PastJob, 'state' | 'durations'>): string {
  const ends = state === 'Deleted' ? ['Succeeded', 'Failed', 'Cancelled'].filter((end) => end in durations) : [];
  return ends.length === 1 ? (ends[0] ?? state) : state;
}

export const endOf = (job: PastJob): number => (outcomeOf(job) === job.state ? job.since : (job.endedAt ?? job.since));

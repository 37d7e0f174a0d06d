import type { JobState } from '../jobs/job.ts';
import type { PodState } from '../pods/pod.ts';

/** What a state means to the eye. Each has a shape of its own, so that colour is never the only sign. */
export type Tone = 'failed' | 'warning' | 'waiting' | 'running' | 'paused' | 'done' | 'ending';

type NodeState = 'Ready' | 'NotReady' | 'Unschedulable' | 'Pressed';

const tones: Record<JobState | PodState | 'Submitted' | 'Queued' | 'Cancelled' | 'Deleted' | NodeState, Tone> = {
  Submitted: 'waiting',
  Queued: 'waiting',
  Cancelled: 'paused',
  Deleted: 'ending',
  Failed: 'failed',
  Retrying: 'warning',
  Waiting: 'warning',
  Pending: 'waiting',
  Running: 'running',
  Suspended: 'paused',
  Complete: 'done',
  Succeeded: 'done',
  Deleting: 'ending',
  Unknown: 'warning',
  Ready: 'done',
  NotReady: 'failed',
  Unschedulable: 'paused',
  Pressed: 'warning',
};

export function toneOf(state: string): Tone {
  return tones[state as keyof typeof tones] ?? 'waiting';
}

/** By urgency, so that sorting by state brings what needs a person to one end. */
const order: readonly Tone[] = ['failed', 'warning', 'waiting', 'running', 'paused', 'ending', 'done'];

export function urgency(state: string): number {
  return order.indexOf(toneOf(state));
}

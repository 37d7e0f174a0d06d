import type { JobState } from '../jobs/job.ts';
import type { PodPhase } from '../pods/pod.ts';

/** What a state means to the eye. Each has a shape of its own, so that colour is never the only sign. */
export type Tone = 'failed' | 'warning' | 'waiting' | 'running' | 'paused' | 'done' | 'ending';

type NodeState = 'Ready' | 'NotReady' | 'Pressed';

const tones: Record<JobState | PodPhase | 'Submitted' | 'Queued' | 'Cancelled' | 'Deleted' | NodeState, Tone> = {
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
  Succeeded: 'done',
  Deleting: 'ending',
  Unknown: 'warning',
  Ready: 'done',
  NotReady: 'failed',
  Pressed: 'warning',
};

/** What kubectl prints of pods and nodes, beside the states above. An init container's state stands behind `Init:`, what is not scheduled to behind a comma. */
const printed: Readonly<Record<string, Tone>> = {
  Completed: 'done',
  Available: 'done',
  Active: 'done',
  Bound: 'done',
  Terminating: 'ending',
  ContainerCreating: 'waiting',
  PodInitializing: 'waiting',
  SchedulingGated: 'waiting',
  'Ready,SchedulingDisabled': 'paused',
  Unavailable: 'failed',
  Lost: 'failed',
};
const starting = /^Init:\d+\/\d+$/;
const triedAgain = /BackOff$|^(Init:)?(Err[A-Z]|CreateContainer|RunContainer|Invalid|RegistryUnavailable|ImageInspectError)/;
const over = /^(Init:)?(Error$|ExitCode:|Signal:|OOMKilled|Evicted|Preempt|DeadlineExceeded|NodeLost|ContainerCannotRun|ContainerStatusUnknown|StartError|Unexpected|OutOf|NodeAffinity|NotReady)/;

export function toneOf(state: string): Tone {
  const known = tones[state as keyof typeof tones] ?? printed[state];
  if (known) return known;
  return starting.test(state) ? 'waiting' : triedAgain.test(state) ? 'warning' : over.test(state) ? 'failed' : 'waiting';
}

/** By urgency, so that sorting by state brings what needs a person to one end. */
const order: readonly Tone[] = ['failed', 'warning', 'waiting', 'running', 'paused', 'ending', 'done'];

export function urgency(state: string): number {
  return order.indexOf(toneOf(state));
}

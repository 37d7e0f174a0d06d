// What a batch/v1 Job says of itself, and what that means to its owner.

import type { KubeObject } from '@kubecast/sdk';
import { ownerOf } from '../table/owner.ts';
import { t } from './texts.ts';

export interface Condition {
  readonly type: string;
  readonly status: string;
  readonly reason?: string;
  readonly message?: string;
}

export interface Job extends KubeObject {
  /** The state in which the history has such a job that it sees for the first time. */
  readonly $status?: string;
  readonly spec?: {
    readonly suspend?: boolean;
    readonly parallelism?: number;
    /** Absent: the job is complete as soon as one pod succeeds (a work queue). */
    readonly completions?: number;
  };
  readonly status?: {
    readonly active?: number;
    readonly ready?: number;
    readonly succeeded?: number;
    readonly failed?: number;
    readonly startTime?: string;
    readonly completionTime?: string;
    readonly conditions?: readonly (Condition & { readonly lastTransitionTime?: string })[];
  };
}

export const jobStates = ['Failed', 'Retrying', 'Queued', 'Pending', 'Running', 'Suspended', 'Succeeded', 'Deleting'] as const;
export type JobState = (typeof jobStates)[number];

export interface JobRow<State extends string = JobState> {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly owner: string;
  readonly queue: string;
  readonly state: State;
  /** A word or two beside the state, such as the reason of a failure. */
  readonly detail: string;
  /** The same at length; may be empty. */
  readonly message: string;
  readonly succeeded: number;
  readonly failed: number;
  /** Undefined for a work queue, whose size nobody knows. */
  readonly completions: number | undefined;
  readonly created: number;
  readonly started: number | undefined;
  readonly finished: number | undefined;
}

export function jobRow(job: Job): JobRow {
  const { metadata, spec = {}, status = {} } = job;
  const ended = conditionOf(job, 'Complete') ?? conditionOf(job, 'Failed');
  return {
    uid: metadata.uid,
    name: metadata.name,
    namespace: metadata.namespace ?? '',
    owner: ownerOf(metadata),
    queue: queueOf(job),
    ...stateOf(job),
    succeeded: status.succeeded ?? 0,
    failed: status.failed ?? 0,
    completions: spec.completions ?? (spec.parallelism === undefined || spec.parallelism === 1 ? 1 : undefined),
    created: timeOf(metadata.creationTimestamp) ?? 0,
    started: timeOf(status.startTime),
    // completionTime is only set on success.
    finished: timeOf(status.completionTime) ?? timeOf(ended?.lastTransitionTime),
  };
}

/**
 * Since when it ran, as far as it says so itself: it claims to have begun when its controller did, whether a pod ran or not. Of one that waits, or that failed
 * by its deadline without having achieved anything, nobody knows that it ever ran.
 */
export const ranSince = ({ state, detail, succeeded, started }: Pick<JobRow<string>, 'state' | 'detail' | 'succeeded' | 'started'>): number | undefined =>
  succeeded > 0 || state === 'Running' || state === 'Succeeded' || state === 'Retrying' || (state === 'Failed' && detail !== 'DeadlineExceeded') ? started : undefined;

/** A job of a large table, in whose words the gateway counts and filters. */
export function listedJob(job: Job): JobRow<string> {
  const row = jobRow(job);
  return { ...row, state: job.$status || row.state };
}

interface Stated {
  readonly state: JobState;
  readonly detail: string;
  readonly message: string;
}

/**
 * The first that applies, from what is final to what may change any moment: what the history's rule says of a job that it
 * sees for the first time. Failures are counted for ever, so they say that nothing runs only of a job that has achieved nothing.
 */
function stateOf(job: Job): Stated {
  const { metadata, spec = {}, status = {} } = job;
  const { active = 0, failed = 0, succeeded = 0 } = status;
  const said = (state: JobState, detail = '', message = ''): Stated => ({ state, detail, message });

  if (conditionOf(job, 'Complete')) return said('Succeeded');
  const failure = conditionOf(job, 'Failed');
  if (failure) return said('Failed', failure.reason ?? '', failure.message);
  if (metadata.deletionTimestamp) return said('Deleting');
  // Decided, but its pods are not gone yet.
  const failing = conditionOf(job, 'FailureTarget');
  if (failing) return said('Running', t.failing(failing.reason ?? t.unknown), failing.message);
  if (conditionOf(job, 'SuccessCriteriaMet')) return said('Running', t.finishing);
  if (spec.suspend || conditionOf(job, 'Suspended')) return said(queueOf(job) ? 'Queued' : 'Suspended');
  // API servers before 1.24 do not count the ready ones.
  const ready = status.ready ?? active;
  const again = failed > 0 ? t.failed(failed) : '';
  if (ready > 0 || succeeded > 0) return said('Running', again);
  if (failed > 0) return said('Retrying', again);
  return said('Pending');
}

/** Kueue suspends what it has not admitted. */
function queueOf({ metadata }: Job): string {
  return metadata.labels?.['kueue.x-k8s.io/queue-name'] ?? metadata.annotations?.['kueue.x-k8s.io/queue-name'] ?? '';
}

function conditionOf(job: Job, type: string): NonNullable<NonNullable<Job['status']>['conditions']>[number] | undefined {
  return job.status?.conditions?.find((condition) => condition.type === type && condition.status === 'True');
}

export function timeOf(text: string | undefined): number | undefined {
  const time = text === undefined ? NaN : Date.parse(text);
  return Number.isNaN(time) ? undefined : time;
}

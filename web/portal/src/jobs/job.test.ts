import { describe, expect, test } from 'vitest';
import { ranSince, jobRow, type Job } from './job.ts';

const metadata = { name: 'train', namespace: 'team-a', uid: 'u', creationTimestamp: '2030-01-01T00:00:00Z' };
const job = (spec: Job['spec'], status: Job['status'], more: Partial<Job['metadata']> = {}): Job => ({
  metadata: { ...metadata, ...more },
  spec: { completions: 4, parallelism: 4, ...spec },
  status,
});
const condition = (type: string, reason?: string, status = 'True') => ({ type, status, ...(reason ? { reason } : {}) });

describe('state', () => {
  test.each<[string, Job, string]>([
    ['just created, no status at all', job({}, undefined), 'Pending'],
    ['pods exist, none is ready', job({}, { active: 4, ready: 0 }), 'Pending'],
    ['one of four is ready', job({}, { active: 4, ready: 1 }), 'Running'],
    ['an old API server that counts no ready pods', job({}, { active: 1 }), 'Running'],
    ['a pod failed and its successor is not ready', job({}, { active: 1, ready: 0, failed: 2 }), 'Retrying 2 failed'],
    ['a pod failed, back-off, no pod at all', job({}, { failed: 1 }), 'Retrying 1 failed'],
    ['a pod failed and another one runs', job({}, { active: 1, ready: 1, failed: 1 }), 'Running 1 failed'],
    ['between two pods of a sequence', job({}, { succeeded: 2 }), 'Running'],
    ['a pod failed after another had succeeded: work is kept', job({}, { active: 1, ready: 0, failed: 1, succeeded: 2 }), 'Running 1 failed'],
    ['seven one after another, one failed on the way', job({ completions: 7, parallelism: 1 }, { failed: 1, succeeded: 3 }), 'Running 1 failed'],
    ['waits for quota', job({ suspend: true }, undefined, { labels: { 'kueue.x-k8s.io/queue-name': 'gpus' } }), 'Queued'],
    ['lost its quota', job({}, { conditions: [condition('Suspended')] }, { labels: { 'kueue.x-k8s.io/queue-name': 'gpus' } }), 'Queued'],
    ['suspended before it began', job({ suspend: true }, undefined), 'Suspended'],
    ['suspended by condition', job({}, { conditions: [condition('Suspended')] }), 'Suspended'],
    ['resumed: the condition is there, and false', job({ suspend: false }, { active: 1, ready: 1, conditions: [condition('Suspended', 'JobResumed', 'False')] }), 'Running'],
    ['complete', job({}, { succeeded: 4, conditions: [condition('SuccessCriteriaMet'), condition('Complete')] }), 'Succeeded'],
    ['complete although pods failed on the way', job({}, { succeeded: 4, failed: 3, conditions: [condition('Complete')] }), 'Succeeded'],
    ['failed', job({}, { failed: 3, conditions: [condition('FailureTarget'), condition('Failed', 'BackoffLimitExceeded')] }), 'Failed BackoffLimitExceeded'],
    ['failed while suspended', job({ suspend: true }, { conditions: [condition('Failed', 'DeadlineExceeded')] }), 'Failed DeadlineExceeded'],
    ['failure decided, pods still end', job({}, { active: 1, ready: 1, conditions: [condition('FailureTarget', 'PodFailurePolicy')] }), 'Running failing: PodFailurePolicy'],
    ['success decided, pods still end', job({}, { active: 1, conditions: [condition('SuccessCriteriaMet')] }), 'Running finishing'],
    ['being deleted', job({}, { active: 1, ready: 1 }, { deletionTimestamp: '2030-01-01T00:00:00Z' }), 'Deleting'],
    ['being deleted after its end: the end counts', job({}, { conditions: [condition('Complete')] }, { deletionTimestamp: '2030-01-01T00:00:00Z' }), 'Succeeded'],
  ])('%s', (_, object, want) => {
    const { state, detail } = jobRow(object);
    expect(`${state} ${detail}`.trim()).toBe(want);
  });
});

describe('owner', () => {
  test('the label wins over the annotation', () => {
    const labels = { 'kubecast.io/owner': 'label' };
    const annotations = { 'kubecast.io/owner': 'someone@example.org' };
    expect(jobRow(job({}, {}, { labels, annotations })).owner).toBe('label');
    expect(jobRow(job({}, {}, { annotations })).owner).toBe('someone@example.org');
    expect(jobRow(job({}, {})).owner).toBe('');
  });
});

describe('times', () => {
  test('a failed job has no completionTime; its condition tells when it ended', () => {
    const status = { startTime: '2030-01-01T00:00:10Z', conditions: [{ ...condition('Failed'), lastTransitionTime: '2030-01-01T00:01:00Z' }] };
    expect(jobRow(job({}, status))).toMatchObject({ started: Date.UTC(2030, 0, 1, 0, 0, 10), finished: Date.UTC(2030, 0, 1, 0, 1) });
  });

  test('a running one has not ended', () => {
    expect(jobRow(job({}, { startTime: '2030-01-01T00:00:10Z' })).finished).toBeUndefined();
  });
});

test.each([
  ['waits for a node', job({}, { startTime: '2030-01-01T00:00:10Z', active: 1, ready: 0 }), false],
  ['failed by its deadline, and nothing is known to have run', job({}, { startTime: '2030-01-01T00:00:10Z', failed: 1, conditions: [condition('Failed', 'DeadlineExceeded')] }), false],
  ['runs', job({}, { startTime: '2030-01-01T00:00:10Z', active: 1, ready: 1 }), true],
  ['failed by its pods', job({}, { startTime: '2030-01-01T00:00:10Z', failed: 1, conditions: [condition('Failed', 'BackoffLimitExceeded')] }), true],
  ['has succeeded', job({}, { startTime: '2030-01-01T00:00:10Z', succeeded: 1, conditions: [condition('Complete')] }), true],
])('a job that never ran has no run time: one that %s', (_, object, ran) => {
  expect(ranSince(jobRow(object)) !== undefined).toBe(ran);
});

test('a work queue has no known number of completions, a plain job has one', () => {
  expect(jobRow({ metadata, spec: { parallelism: 3 } }).completions).toBeUndefined();
  expect(jobRow({ metadata, spec: {} }).completions).toBe(1);
  expect(jobRow({ metadata }).completions).toBe(1);
});

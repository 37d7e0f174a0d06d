import type { PastJob } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { unwrittenOf } from './unwritten.ts';

const ended = (more: object): PastJob => ({ state: 'Failed', startedAt: undefined, waited: { over: 5_000, since: undefined }, reasons: [], ...more }) as unknown as PastJob;

test.each([
  ['its wait is not known: it was found late', { waited: undefined }],
  ['a pod of it has run', { pods: [{ startedAt: undefined }, { startedAt: 1 }] }],
  ['it was seen to begin', { startedAt: 1 }],
])('a job is not said to have never run, where %s', (_, more) => {
  expect(unwrittenOf(ended(more), false).text).toBe('Its pods are gone, and nothing of what they wrote was kept.');
});

test('a job that was seen to wait until it was cancelled never ran', () => {
  expect(unwrittenOf(ended({ state: 'Cancelled', pods: [{ startedAt: undefined }] }), false).text).toBe('It never ran, so nothing was written.');
});

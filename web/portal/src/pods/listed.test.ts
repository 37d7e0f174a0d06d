import { expect, test } from 'vitest';
import { toneOf } from '../state/tone.ts';
import { listedPod, type Pod } from './pod.ts';

const pod = ($status: string, status: Pod['status']): Pod => ({ metadata: { name: 'p', uid: 'u' }, $status, status });
const said = (one: Pod): string => [listedPod(one).state, listedPod(one).detail].filter(Boolean).join(' ');

test('a pod of a table is in the state by which the gateway counts and filters, and nothing is said twice', () => {
  const crashing = { phase: 'Running', containerStatuses: [{ name: 'main', state: { waiting: { reason: 'CrashLoopBackOff' } } }] };
  expect(said(pod('CrashLoopBackOff', crashing))).toBe('CrashLoopBackOff');
  expect(said(pod('Error', { phase: 'Failed', containerStatuses: [{ name: 'main', state: { terminated: { reason: 'Error', exitCode: 2 } } }] }))).toBe('Error exit code 2');
  expect(said(pod('Pending', { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }))).toBe('Pending unschedulable');
  expect(said(pod('ContainerCreating', { phase: 'Pending', containerStatuses: [{ name: 'main', state: { waiting: { reason: 'ContainerCreating' } } }] }))).toBe('ContainerCreating');
  expect(said(pod('', crashing))).toBe('Waiting CrashLoopBackOff'); // a gateway that does not tell
});

test('what kubectl prints looks like what it means', () => {
  const tones = ['CrashLoopBackOff', 'Init:ImagePullBackOff', 'ErrImagePull', 'CreateContainerConfigError', 'OOMKilled', 'Init:Error', 'Evicted', 'NotReady,SchedulingDisabled', 'Init:1/2', 'Completed', 'Terminating', 'Ready,SchedulingDisabled', 'SomethingElse'].map(toneOf);
  expect(tones).toEqual(['warning', 'warning', 'warning', 'warning', 'failed', 'failed', 'failed', 'failed', 'waiting', 'done', 'ending', 'paused', 'waiting']);
});

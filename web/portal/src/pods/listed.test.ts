import { expect, test } from 'vitest';
import { toneOf } from '../state/tone.ts';
import { podLine } from './exported.ts';
import { podRow, whyOfPod, type Pod } from './pod.ts';

const pod = ($status: string, status: Pod['status']): Pod => ({ metadata: { name: 'p', uid: 'u' }, $status, status });
const said = (one: Pod): string => [podRow(one).state, podRow(one).detail].filter(Boolean).join(' ');

test('a pod is in the state by which the gateway counts and filters, and nothing is said twice', () => {
  const crashing = { phase: 'Running', containerStatuses: [{ name: 'main', state: { waiting: { reason: 'CrashLoopBackOff' } } }] };
  expect(said(pod('CrashLoopBackOff', crashing))).toBe('CrashLoopBackOff');
  expect(said(pod('Error', { phase: 'Failed', containerStatuses: [{ name: 'main', state: { terminated: { reason: 'Error', exitCode: 2 } } }] }))).toBe('Error exit code 2');
  expect(said(pod('Pending', { phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }))).toBe('Pending unschedulable');
  expect(said(pod('ContainerCreating', { phase: 'Pending', containerStatuses: [{ name: 'main', state: { waiting: { reason: 'ContainerCreating' } } }] }))).toBe('ContainerCreating');
  expect(said(pod('', crashing))).toBe('Running CrashLoopBackOff'); // a gateway that does not tell
});

test('what kubectl prints looks like what it means', () => {
  const tones = ['CrashLoopBackOff', 'Init:ImagePullBackOff', 'ErrImagePull', 'CreateContainerConfigError', 'OOMKilled', 'Init:Error', 'Evicted', 'NotReady,SchedulingDisabled', 'Init:1/2', 'Completed', 'Terminating', 'Ready,SchedulingDisabled', 'SomethingElse'].map(toneOf);
  expect(tones).toEqual(['warning', 'warning', 'warning', 'warning', 'failed', 'failed', 'failed', 'failed', 'waiting', 'done', 'ending', 'paused', 'waiting']);
});

test('why a container is started again and again is how it ended the last time, in tables, files and on the page', () => {
  const waiting = { reason: 'CrashLoopBackOff', message: 'back-off 5m0s restarting failed container' };
  const main = { name: 'main', restartCount: 5, state: { waiting }, lastState: { terminated: { reason: 'OOMKilled', exitCode: 137, finishedAt: '2030-01-01T00:00:00Z' } } };
  const side = { name: 'side', restartCount: 1, state: {}, lastState: { terminated: { reason: 'Error', exitCode: 1, finishedAt: '2030-01-01T00:01:00Z' } } };
  const crashing = pod('CrashLoopBackOff', { phase: 'Running', containerStatuses: [side, main] });
  expect(said(crashing)).toBe('CrashLoopBackOff OOMKilled · exit 137');
  expect(podLine(podRow(crashing))).toContain('OOMKilled · exit 137');
  expect(whyOfPod(podRow(crashing))).toBe('main was OOM-killed (exit 137), after 5 restarts');
  expect(whyOfPod(podRow(pod('Running', { phase: 'Running', containerStatuses: [side] })))).toBe('side failed (exit 1), after 1 restart');
  expect(said(pod('Running', { phase: 'Running', containerStatuses: [side] }))).toBe('Running');
});

test('a pod that somebody ended is not told as if its container had failed', () => {
  const killed = [{ name: 'main', state: { terminated: { reason: 'Error', exitCode: 137 } } }];
  expect(whyOfPod(podRow(pod('Evicted', { phase: 'Failed', reason: 'Evicted', containerStatuses: killed })))).toBe('');
  expect(whyOfPod(podRow(pod('Error', { phase: 'Failed', containerStatuses: killed })))).toBe('main failed (exit 137)');
});

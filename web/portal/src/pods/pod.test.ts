import { expect, test } from 'vitest';
import { podRow, type Pod } from './pod.ts';

const metadata = { name: 'train-x', namespace: 'team-a', uid: 'u' };
const pod = (status: Pod['status'], more: Partial<Pod['metadata']> = {}): Pod => ({
  metadata: { ...metadata, ...more },
  spec: { nodeName: 'node-1', containers: [{ name: 'main' }, { name: 'sidecar' }] },
  status,
});
const waiting = (reason: string) => [{ name: 'main', state: { waiting: { reason } } }];
const terminated = (exitCode: number, reason: string) => [{ name: 'main', state: { terminated: { exitCode, reason } } }];

const ended = (name: string, exitCode: number, reason: string, seconds: string) => ({
  name,
  state: { terminated: { exitCode, reason, finishedAt: `2030-01-01T00:00:${seconds}Z` } },
});
const withSidecar = (status: Pod['status']): Pod => ({
  ...pod(status),
  spec: { containers: [{ name: 'main' }, { name: 'helper' }], initContainers: [{ name: 'proxy', restartPolicy: 'Always' }, { name: 'first' }] },
});

test.each<[string, Pod, string]>([
  ['no status yet', pod(undefined), 'Unknown'],
  ['no room', pod({ phase: 'Pending', conditions: [{ type: 'PodScheduled', status: 'False', reason: 'Unschedulable' }] }), 'Pending unschedulable'],
  ['on its way', pod({ phase: 'Pending', containerStatuses: waiting('ContainerCreating') }), 'Pending creating'],
  ['an image that is not there', pod({ phase: 'Pending', containerStatuses: waiting('ImagePullBackOff') }), 'Waiting ImagePullBackOff'],
  ['an init container that crashes', pod({ phase: 'Pending', initContainerStatuses: waiting('CrashLoopBackOff'), containerStatuses: waiting('PodInitializing') }), 'Waiting CrashLoopBackOff'],
  ['running', pod({ phase: 'Running' }), 'Running'],
  ['succeeded', pod({ phase: 'Succeeded', containerStatuses: terminated(0, 'Completed') }), 'Succeeded'],
  ['out of memory', pod({ phase: 'Failed', containerStatuses: terminated(137, 'OOMKilled') }), 'Failed OOMKilled'],
  ['a plain error says its exit code', pod({ phase: 'Failed', containerStatuses: terminated(2, 'Error') }), 'Failed exit code 2'],
  [
    'a sidecar hides nothing of how the main container failed',
    withSidecar({ phase: 'Failed', initContainerStatuses: [ended('proxy', 143, 'Error', '01')], containerStatuses: [ended('main', 137, 'OOMKilled', '02')] }),
    'Failed OOMKilled',
  ],
  [
    'an init container before a sidecar',
    withSidecar({ phase: 'Failed', initContainerStatuses: [ended('proxy', 143, 'Error', '01'), ended('first', 2, 'Error', '02')] }),
    'Failed exit code 2',
  ],
  [
    'what failed first made the others end',
    withSidecar({ phase: 'Failed', containerStatuses: [ended('helper', 143, 'Error', '03'), ended('main', 137, 'OOMKilled', '02')] }),
    'Failed OOMKilled',
  ],
  ['evicted', pod({ phase: 'Failed', reason: 'Evicted' }), 'Failed Evicted'],
  ['failed, nobody says why', pod({ phase: 'Failed' }), 'Failed'],
  ['being deleted', pod({ phase: 'Running' }, { deletionTimestamp: '2030-01-01T00:00:00Z' }), 'Deleting'],
])('%s', (_, object, want) => {
  const { phase, detail } = podRow(object);
  expect(`${phase} ${detail}`.trim()).toBe(want);
});

test('ready containers, restarts, node and job', () => {
  const owner = { apiVersion: 'batch/v1', kind: 'Job', name: 'train', uid: 'j', controller: true };
  const statuses = [
    { name: 'main', ready: true, restartCount: 2 },
    { name: 'sidecar', ready: false, restartCount: 1 },
  ];
  expect(podRow(pod({ phase: 'Running', containerStatuses: statuses }, { ownerReferences: [owner] }))).toMatchObject({
    ready: 1,
    containers: 2,
    logs: 2,
    restarts: 3,
    node: 'node-1',
    job: 'train',
  });
});

test('ready containers and restarts are those that kubectl counts, by which the gateway sorts', () => {
  const begins = { initContainerStatuses: [{ name: 'proxy', ready: true, restartCount: 2 }, { name: 'first', restartCount: 5 }] };
  const runs = { ...begins, conditions: [{ type: 'Initialized', status: 'True' }], containerStatuses: [{ name: 'main', ready: false, restartCount: 1 }] };
  expect(podRow(withSidecar(runs))).toMatchObject({ ready: 1, containers: 3, restarts: 3, logs: 4 });
  expect(podRow(withSidecar(begins))).toMatchObject({ ready: 1, containers: 3, restarts: 7 });
});

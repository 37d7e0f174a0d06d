import type { Queue } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { formatRange } from '../texts/format.ts';
import { formatView, linkToQueue, parseView } from '../view/view.ts';
import { numbersOf } from './Quota.tsx';
import { sharesOf, usesOf } from './quota.ts';
import { linesOf } from './QueuePage.tsx';
import { placeOf, spanUntil } from './Starts.tsx';

const queue = (name: string, namespace: string, used: string, more: Partial<Queue> = {}): Queue => ({
  name, namespace, kind: namespace ? 'LocalQueue' : 'ClusterQueue', clusterQueue: namespace ? 'all' : '', cohort: '', stopped: false, waiting: 0, running: 0,
  resources: [
    { flavor: 'default', resource: 'cpu', quota: '40', used: '4500m', borrowed: null },
    { flavor: 'a100', resource: 'nvidia.com/gpu', quota: '8', used, borrowed: namespace ? null : '2' },
    { flavor: 'h100', resource: 'nvidia.com/gpu', quota: '0', used: '0', borrowed: '0' },
  ],
  ...more,
});

test('GPUs come first, what is neither there nor used is left out, and what is borrowed is told', () => {
  expect(usesOf(queue('all', '', '10')).map(numbersOf)).toEqual(['10 of 8, 2 borrowed', '4.5 of 40']);
  expect(usesOf(queue('gpu', 'a', '3', { resources: [{ flavor: 'f', resource: 'memory', quota: null, used: '2Gi', borrowed: null }] })).map(numbersOf)).toEqual(['2 GiB used']);
});

test('teams have what their queues say, and what nobody who may be seen has is of others', () => {
  const all = [queue('one', 'a', '3'), queue('two', 'a', '1'), queue('b', 'b', '0'), queue('c', 'c', '2', { clusterQueue: 'elsewhere' }), queue('all', '', '10')];
  expect(sharesOf('all', all)).toEqual({ of: [{ flavor: 'a100', resource: 'nvidia.com/gpu' }], teams: [{ team: 'a', used: [4] }, { team: '', used: [6] }] });
  // Whoever may not see the whole is told of no others.
  expect(sharesOf('all', all.slice(0, 3)).teams).toEqual([{ team: 'a', used: [4] }]);
});

test('strangers in a row are one line of numbers, and stay apart where somebody stands between', () => {
  const hidden = (position: number) => ({ hidden: true, position }) as const;
  const mine = { hidden: false, position: 3, uid: 'u' } as Parameters<typeof linesOf>[0][number];
  expect(linesOf([hidden(1), hidden(2), mine, hidden(4)])).toEqual([{ hidden: true, from: 1, to: 2, count: 2 }, mine, { hidden: true, from: 4, to: 4, count: 1 }]);
});

test('a start is an interval in plain words, never a moment, and says so when it is late', () => {
  const now = 1_000_000;
  const minute = 60_000;
  const start = (from: number, to: number) => spanUntil({ from: now + from * minute, to: now + to * minute, confidence: 0.8 }, now);
  expect([start(10, 25), start(-5, 25), start(-10, -1), start(70, 200)]).toEqual(['in 10–25 min', 'within 25 min', 'later than expected', 'in 1.2–3.3 hr']);
  expect(formatRange(0, 1_000)).toBe('1 min');
});

test('a place is told as far as it is known', () => {
  expect([placeOf({ position: 3, clusterPosition: 7, starts: undefined }), placeOf({ position: null, clusterPosition: null, starts: undefined })]).toEqual(['3 in the queue · 7 in the cluster', '']);
});

test('a queue has an address, of a namespace or of the whole cluster', () => {
  for (const [namespace, name] of [['team-a', 'gpu'], ['', 'all']] as const) {
    const view = parseView(linkToQueue(namespace, name, parseView('#queues?cluster=west')));
    expect(view).toMatchObject({ page: 'queues', cluster: 'west', object: { namespace, name } });
    expect(formatView(view)).toBe(linkToQueue(namespace, name, parseView('#queues?cluster=west')));
  }
});

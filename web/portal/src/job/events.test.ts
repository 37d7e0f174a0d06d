import { expect, test } from 'vitest';
import { eventsName, ofJob, type ClusterEvent } from './Events.tsx';

let n = 0;
const event = (kind: string, name: string, uid: string, more: object = {}): ClusterEvent => ({ metadata: { uid: `e${n++}`, name: `${name}.${n}` }, involvedObject: { kind, name, uid }, lastTimestamp: new Date(n * 1_000).toISOString(), ...more });
const of = (all: readonly ClusterEvent[], uid: string | undefined, pods: readonly string[] = []): (string | undefined)[] => ofJob(all, 'train', uid, pods).map(({ involvedObject }) => involvedObject?.uid);

test('Events of another job whose name begins alike are none of this one', () => {
  const all = [event('Job', 'train', 'j'), event('Pod', 'train-x2k4d', 'p'), event('Job', 'train-2', 'j2'), event('Pod', 'train-2-abcde', 'p2')];
  expect(of(all, 'j', ['p'])).toEqual(['j', 'p']);
});

test('Events of an earlier job of the name, and of its pods, are none of this one', () => {
  const created = (job: string, pod: string): ClusterEvent => event('Job', 'train', job, { reason: 'SuccessfulCreate', message: `Created pod: ${pod}` });
  const all = [created('old', 'train-aaaaa'), event('Pod', 'train-aaaaa', 'p-old'), created('new', 'train-bbbbb'), event('Pod', 'train-bbbbb', 'p-new')];
  expect(of(all, 'new')).toEqual(['new', 'p-new']); // its pod is gone, and no history has it
  expect(of(all, 'old')).toEqual(['old', 'p-old']);
  expect(of(all, undefined)).toEqual(['new', 'p-new']); // the job is gone as well
});

test('what no job is known to have made, and what strangers write, belongs to none', () => {
  const forged = event('Job', 'train', 'other', { reason: 'SuccessfulCreate', message: 'Created pod: secret' });
  expect(of([forged, event('Pod', 'secret', 's'), event('Pod', 'train-x', '')], 'j')).toEqual([]);
});

test('of a long name that part is asked for which its pods have as well', () => {
  const name = 'a'.repeat(63);
  expect(`${name.slice(0, 57)}-x2k4d.17`).toContain(eventsName(name)); // a pod's name has at most 63 characters
});

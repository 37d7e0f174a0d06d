import type { Transition } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { latestLife, stepsOf, withCause } from './life.ts';

const to = (uid: string, state: string, at: number): Transition => ({
  seq: String(at), namespace: 'n', name: 'j', uid, from: undefined, to: state, at, late: false, attempt: 1, reason: '', message: '', owner: '',
});
const all = [to('a', 'Running', 1), to('a', 'Failed', 2), to('b', 'Pending', 3), to('b', 'Running', 5)];

test('of jobs that had one name, the one that is there is told, and how many others there were', () => {
  expect(latestLife(all, 'a')).toMatchObject({ others: 1, transitions: [{ to: 'Running' }, { to: 'Failed' }] });
  expect(latestLife(all, undefined)).toMatchObject({ others: 1, transitions: [{ uid: 'b' }, { uid: 'b' }] });
});

test('a job that was just made anew has none of the states of its predecessor', () => {
  expect(latestLife(all, 'c')).toEqual({ others: 2, transitions: [] });
  expect(latestLife([], undefined)).toEqual({ others: 0, transitions: [] });
});

test('a state lasts until the next, the last one goes on, and an end does not last', () => {
  expect(stepsOf(latestLife(all, 'b').transitions)).toMatchObject([{ until: 5, lasts: true }, { until: undefined, lasts: true }]);
  expect(stepsOf(latestLife(all, 'a').transitions)[1]).toMatchObject({ until: undefined, lasts: false });
});

test('a state that nobody saw begin has lasted for that long at least', () => {
  const steps = stepsOf([{ ...to('a', 'Pending', 1), late: true }, to('a', 'Running', 2), { ...to('a', 'Failed', 3), late: true }]);
  expect(steps.map(({ least }) => least)).toEqual([true, false, false]);
});

test('what is found out of an end after it was told is told with it, and with no other state', () => {
  const cause = { text: 'main failed (exit 1)', reason: 'Error', container: 'main', exitCode: 1, signal: null, pod: 'p', node: 'n', pods: 1 };
  const life = latestLife([...all, to('a', 'Deleted', 9)], 'a');
  expect(withCause(life, { uid: 'a', attempt: 1, cause }).transitions.map((one) => one.cause)).toEqual([undefined, cause, undefined]);
  for (const past of [undefined, { uid: 'a', attempt: 1 }, { uid: 'a', attempt: 2, cause }, { uid: 'b', attempt: 1, cause }]) expect(withCause(life, past)).toBe(life);
  const goesOn = latestLife(all, 'b');
  expect(withCause(goesOn, { uid: 'b', attempt: 1, cause })).toBe(goesOn);
});

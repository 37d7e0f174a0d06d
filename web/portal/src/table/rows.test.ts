import { expect, test } from 'vitest';
import type { KubeObject, Status } from '@kubecast/sdk';
import { Rows } from './rows.ts';

type Thing = KubeObject & { readonly state: string };

function setUp() {
  let reads = 0;
  const rows = new Rows(({ metadata, state }: Thing) => {
    reads++;
    return { uid: metadata.uid, name: metadata.name, namespace: '', state, created: 0 };
  });
  let data: readonly Thing[] = [];
  let status: Status = 'loading';
  const tell = (uid: string, state: string, namespace = 'n') => {
    const told: Thing = { metadata: { uid, name: uid, namespace }, state };
    data = data.some(({ metadata }) => metadata.uid === uid) ? data.map((one) => (one.metadata.uid === uid ? told : one)) : [...data, told];
  };
  const synced = () => (status = 'live');
  /** Another watch begins. */
  const another = () => {
    data = [];
    status = 'loading';
  };
  const look = (namespace = '') => rows.read({ data, status }, namespace);
  return { tell, synced, another, look, reads: () => reads };
}

test('what was there at first is no news; what comes later and what changes its state is', () => {
  const { tell, synced, look } = setUp();
  look();
  tell('a', 'Running');
  look(); // the snapshot arrives in several batches
  tell('b', 'Running');
  synced();
  expect(look().map((row) => row.changedAt)).toEqual([0, 0]);
  tell('a', 'Succeeded');
  tell('b', 'Running');
  tell('c', 'Pending');
  const [a, b, c] = look();
  expect(a?.changedAt).toBeGreaterThan(0);
  expect(b?.changedAt).toBe(0);
  expect(c?.changedAt).toBeGreaterThan(0);
});

test('a change that leaves the state as it is does not forget when the state changed', () => {
  const { tell, synced, look } = setUp();
  tell('a', 'Pending');
  synced();
  look();
  tell('a', 'Running');
  const at = look()[0]?.changedAt;
  tell('a', 'Running');
  expect(look()[0]?.changedAt).toBe(at);
});

test('one change among ten thousand reads one object, and every other row stays the same', () => {
  const { tell, synced, look, reads } = setUp();
  for (let n = 0; n < 10_000; n++) tell(String(n), 'Running');
  synced();
  const before = look();
  expect(reads()).toBe(10_000);
  tell('77', 'Succeeded');
  const after = look();
  expect(reads()).toBe(10_001);
  expect(after.filter((row, n) => row !== before[n])).toHaveLength(1);
});

test('rows in sight before and after a change of namespace are there at once, others are not, and the new watch has the last word', () => {
  const { tell, synced, another, look } = setUp();
  const uids = (namespace: string) => look(namespace).map(({ uid }) => uid);
  tell('a', 'Running', 'team-a');
  tell('a2', 'Running', 'team-a');
  tell('b', 'Running', 'team-b');
  synced();
  expect(uids('')).toEqual(['a', 'a2', 'b']);
  another();
  expect(uids('team-a')).toEqual(['a', 'a2']);
  tell('a', 'Succeeded', 'team-a');
  expect(look('team-a').map(({ uid, state }) => `${uid} ${state}`)).toEqual(['a2 Running', 'a Succeeded']);
  synced();
  expect(uids('team-a')).toEqual(['a']);
  another();
  tell('b', 'Running', 'team-b');
  synced();
  expect(look('').map(({ changedAt }) => changedAt)).toEqual([0]); // it was merely out of sight
});

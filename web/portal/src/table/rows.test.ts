import { expect, test } from 'vitest';
import { Store, type KubeObject } from '@kubecast/sdk';
import { Rows } from './rows.ts';

type Thing = KubeObject & { readonly state: string };

function setUp() {
  let flush = (): void => undefined;
  const store = new Store<{ things: Thing }>({ watches: ['things'], schedule: (run) => (flush = run) });
  let reads = 0;
  const rows = new Rows(store.collection('things'), ({ metadata, state }: Thing) => {
    reads++;
    return { uid: metadata.uid, name: metadata.name, namespace: '', state, created: 0 };
  });
  const tell = (uid: string, state: string) =>
    store.apply({ watch: 'things', id: '', type: 'modified', object: { metadata: { uid, name: uid }, state } as Thing });
  const synced = () => store.apply({ watch: 'things', id: '', type: 'synced', resourceVersion: '1' });
  const look = () => {
    flush();
    return rows.getSnapshot().rows;
  };
  return { store, rows, tell, synced, look, reads: () => reads };
}

test('what was there at first is no news; what comes later and what changes its state is', () => {
  const { tell, synced, look } = setUp();
  look();
  tell('a', 'Running');
  look(); // the snapshot arrives in several batches
  tell('b', 'Running');
  synced();
  expect(look().map((row) => row.changedAt)).toEqual([0, 0]);
  tell('a', 'Complete');
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
  tell('77', 'Complete');
  const after = look();
  expect(reads()).toBe(10_001);
  expect(after.filter((row, n) => row !== before[n])).toHaveLength(1);
});

test('between two notifications the snapshot is the same object', () => {
  const { tell, rows, look } = setUp();
  tell('a', 'Running');
  look();
  expect(rows.getSnapshot()).toBe(rows.getSnapshot());
});

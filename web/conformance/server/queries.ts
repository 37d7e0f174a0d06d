// Streams of a part: of the objects, and of each object.

import { check, pause, same } from '../case.ts';
import { nameOf, versionOf } from './listener.ts';
import { changesOf, comesTo, serverCase } from './trial.ts';

const n = (value: number | string): { data: { n: string } } => ({ data: { n: String(value) } });

export const queryCases = [
  serverCase('enters-and-leaves', 'An object that begins to match is added, one that ceases to is deleted.', async (trial) => {
    await trial.room.put('a', { ...n(1), labels: { team: 'x' } });
    await trial.room.put('b', { ...n(1), labels: { team: 'y' } });
    const listener = await trial.synced('?labelSelector=team%3Dx');
    await comesTo(listener, { a: '1' });
    await trial.room.put('b', { ...n(2), labels: { team: 'x' } });
    await trial.room.put('a', { ...n(2), labels: { team: 'y' } });
    await comesTo(listener, { b: '2' });
    same(changesOf(listener.told), ['added a', 'added b', 'deleted a'], 'the changes');
  }, 'queries'),

  serverCase('selector-over-an-absence', 'What ceased to match while a client was away is told as deleted.', async (trial) => {
    await trial.room.put('a', { ...n(1), labels: { team: 'x' } });
    const listener = await trial.synced('?labelSelector=team%3Dx');
    listener.close();
    await trial.room.put('a', { ...n(2), labels: { team: 'y' } });
    const again = await trial.listen('?labelSelector=team%3Dx', listener.id);
    await again.next('deleted');
  }, 'queries'),

  serverCase('field-selector', 'Fields of any path select.', async (trial) => {
    await trial.room.put('a', n(1));
    await trial.room.put('b', n(2));
    await comesTo(await trial.synced('?fieldSelector=data.n%3D2'), { b: '2' });
    await comesTo(await trial.synced('?fieldSelector=metadata.name!%3Db'), { a: '1' });
  }, 'queries'),

  serverCase('search', 'A name is found by a part of it, in whatever case.', async (trial) => {
    await trial.room.put('train-resnet', n(1));
    await trial.room.put('evaluate', n(1));
    await comesTo(await trial.synced('?search=ResNet'), { 'train-resnet': '1' });
  }, 'queries'),

  serverCase('fields', 'Only what was asked for goes over the line, and what names the object.', async (trial) => {
    await trial.room.put('a', { data: { n: '1', secret: '2' }, labels: { l: '3' } });
    const listener = await trial.synced('?fields=data.n');
    const [{ data } = { data: {} }] = listener.told;
    same((data as { data?: unknown }).data, { n: '1' }, 'the data');
    same(Object.keys(data).sort(), ['apiVersion', 'data', 'kind', 'metadata'], 'the object');
    same(Object.keys((data as { metadata: object }).metadata).sort(), ['name', 'namespace', 'resourceVersion', 'uid'], 'its metadata');
  }, 'queries'),

  serverCase('status', 'What objects are doing is told to who asks for it, and to nobody else: it is no part of the object.', async (trial) => {
    await trial.room.put('a', n(1));
    const listener = await trial.synced('?fields=$status');
    const object = listener.told.find(({ type }) => type === 'added')?.data ?? {};
    same([Object.keys(object).at(-1), object.$status], ['$status', ''], 'the status');
    const bare = await trial.synced();
    same(bare.told.filter((event) => '$status' in event.data).length, 0, 'those who did not ask');
    await comesTo(await trial.synced('?fieldSelector=$status%3D'), { a: '1' });
    await trial.room.remove('a');
    same((await listener.next('deleted')).data.$status, '', 'the status of what is gone');
  }, 'queries'),

  serverCase('deltas', 'Merge patches lead to the object.', async (trial) => {
    const first = await trial.room.put('a', { data: { n: '1', drop: 'x' }, labels: { l: '1' } });
    const listener = await trial.synced('?deltas=merge-patch');
    const second = await trial.room.put('a', n(2));
    const { data } = await listener.next('patched');
    same([data.uid, data.resourceVersion], [first.metadata.uid, second.metadata.resourceVersion], 'the patch is of');
    const { data: changed } = data.patch as { data: Record<string, unknown> };
    same([Object.keys(changed).sort(), changed.n, changed.drop], [['drop', 'n'], '2', null], 'the patch');
  }, 'queries'),

  serverCase('from-a-version', 'Who has a list goes on behind its version, without a snapshot.', async (trial) => {
    const { metadata } = await trial.room.put('a', n(1));
    await trial.room.put('b', n(2));
    const listener = await trial.listen(`?resourceVersion=${metadata.resourceVersion}`);
    await comesTo(listener, { b: '2' });
    const now = await trial.listen('?sendInitialEvents=false');
    await pause(300);
    await trial.room.put('c', n(3));
    await comesTo(now, { c: '3' });
    same([...listener.told, ...now.told].filter(({ type }) => type === 'synced').length, 0, 'snapshots');
  }, 'queries'),

  serverCase('conflate', 'Who wants less of what changes all the time still ends with the latest, and with every deletion.', async (trial) => {
    await trial.room.put('a', n(0));
    await trial.room.put('b', n(0));
    const listener = await trial.synced('?conflate=500ms');
    for (let write = 1; write <= 20; write++) await trial.room.put('a', n(write));
    await trial.room.remove('b');
    await comesTo(listener, { a: '20' });
    const told = listener.told.filter((event) => event.type === 'modified' && nameOf(event) === 'a');
    check(told.length < 20, 'every modification was told');
    same(told.map(versionOf), [...new Set(told.map(versionOf))], 'the versions');
  }, 'queries'),
];

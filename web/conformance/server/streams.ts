// What a stream tells from its beginning on.

import { check, same } from '../case.ts';
import { versionOf } from './listener.ts';
import { changesOf, comesTo, serverCase } from './trial.ts';

const n = (value: number | string): { data: { n: string } } => ({ data: { n: String(value) } });

export const streamCases = [
  serverCase('begins-at-once', 'A proxy that buffers, or a client that waits for the first byte, learns at once that it is served.', async (trial) => {
    const listener = await trial.listen();
    same(listener.status, 200, 'the status');
    check(/^text\/event-stream\b/.test(listener.headers.get('Content-Type') ?? ''), 'the type is text/event-stream');
    same([listener.headers.get('Cache-Control'), listener.headers.get('X-Accel-Buffering')], ['no-store', 'no'], 'the headers');
    await listener.next('synced');
    const first = listener.blocks.findIndex((block) => block.startsWith('event:'));
    const before = listener.blocks.slice(0, first).join('\n');
    check(/^:/m.test(before) && /^retry: \d+$/m.test(before), `a comment and retry: come before the first event: ${JSON.stringify(before)}`);
  }),

  serverCase('snapshot-of-nothing', 'An empty list is told as complete, too.', async (trial) => {
    const { data } = await (await trial.listen()).next('synced');
    same([data.count, typeof data.resourceVersion], [0, 'string'], 'synced');
  }),

  serverCase('snapshot-whole', 'What was not told before synced does not exist.', async (trial) => {
    for (const name of ['a', 'b', 'c']) await trial.room.put(name, n(name));
    const listener = await trial.synced();
    const at = listener.told.findIndex(({ type }) => type === 'synced');
    same(changesOf(listener.told.slice(0, at)).sort(), ['added a', 'added b', 'added c'], 'the snapshot');
    same(listener.told[at]?.data.count, 3, 'its count');
  }),

  serverCase('frames-whole', 'Nothing in an object can end a frame or a line.', async (trial) => {
    const odd = 'one\n\ndata: {}\nevent: deleted\r\rid: 7\u2028 熊 🐻';
    const listener = await trial.synced();
    const { data } = await trial.room.put('odd', n(odd));
    await listener.tells('odd', data?.n ?? odd);
  }),

  serverCase('changes', 'Each change is told, in order, with the object as it is then; a deletion with its own version.', async (trial) => {
    const listener = await trial.synced();
    const made = await trial.room.put('a', n(1));
    await trial.room.put('a', n(2));
    await trial.room.put('b', n(1));
    await trial.room.remove('a');
    const gone = await listener.next('deleted');
    same(changesOf(listener.told), ['added a', 'modified a', 'added b', 'deleted a'], 'the changes');
    same((gone.data as { metadata: { uid: string } }).metadata.uid, made.metadata.uid, 'the uid');
    check(versionOf(gone) !== made.metadata.resourceVersion, 'a deletion has a version of its own');
    await comesTo(listener, { b: '1' });
  }),

  serverCase('made-anew', 'What is deleted and made anew under its name has another uid, and both are told.', async (trial) => {
    const first = await trial.room.put('a', n(1));
    const listener = await trial.synced();
    await trial.room.remove('a');
    const second = await trial.room.put('a', n(2));
    check(first.metadata.uid !== second.metadata.uid, 'the room gives a uid to each object');
    await listener.tells('a', '2');
    same(changesOf(listener.told), ['added a', 'deleted a', 'added a'], 'the changes');
  }),

  serverCase('snapshot-joins', 'What is written while a snapshot is told is in it, or comes after it.', async (trial) => {
    const wanted = new Map<string, string>();
    const writes = (async () => {
      for (let write = 0; write < 30; write++) {
        const name = `o${write % 7}`;
        if (write % 5 === 4 && wanted.has(name)) {
          await trial.room.remove(name);
          wanted.delete(name);
        } else {
          await trial.room.put(name, n(write));
          wanted.set(name, String(write));
        }
      }
    })();
    const listeners = [];
    for (let begun = 0; begun < 5; begun++) {
      const listener = await trial.listen();
      await listener.next('synced');
      listeners.push(listener);
    }
    await writes;
    for (const listener of listeners) await comesTo(listener, Object.fromEntries(wanted));
  }),

  serverCase('several-watches', 'Watches on one stream have the names that the client gave them, and each has its own snapshot.', async (trial) => {
    const other = await trial.subject.room();
    await trial.room.put('a', n(1));
    await other.put('b', n(1));
    const listener = await trial.listen({ path: `/stream?one=${encodeURIComponent(trial.room.path)}&two=${encodeURIComponent(other.path)}` });
    for (const name of ['one', 'two']) await listener.next('synced', ({ watch }) => watch === name);
    await comesTo(listener, { a: '1' }, 'one');
    await comesTo(listener, { b: '1' }, 'two');
    await other.put('c', n(2));
    await comesTo(listener, { b: '1', c: '2' }, 'two');
    same(listener.told.filter(({ watch, type }) => watch === '' && !/^(goodbye|expiring)$/.test(type)).length, 0, 'events without a name');
  }),

  serverCase('heartbeat', 'Silence is never longer than was asked for, so that a dead stream can be told from a quiet one.', async (trial) => {
    const listener = await trial.listen({ path: `/stream?one=${encodeURIComponent(trial.room.path)}&heartbeat=5s` });
    await listener.next('synced');
    const before = listener.blocks.length;
    await listener.until(() => listener.blocks.length > before, 'no heartbeat comes', 12_000);
  }),
];

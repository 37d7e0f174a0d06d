// What a client is told that comes back.

import { check, pause, same } from '../case.ts';
import { changesOf, comesTo, serverCase, type Trial } from './trial.ts';
import type { Listener } from './listener.ts';

const n = (value: number | string): { data: { n: string } } => ({ data: { n: String(value) } });

/** A position that names what is there. */
async function positionOf(trial: Trial): Promise<string> {
  const listener = await trial.synced();
  listener.close();
  return listener.id;
}

async function isReset(listener: Listener, wanted: Readonly<Record<string, string>>, reason: RegExp): Promise<void> {
  same(listener.status, 200, 'the status');
  await listener.next('synced');
  const [first] = listener.told;
  same(first?.type, 'reset', 'the first event');
  check(reason.test(String(first?.data.reason)), `the reason of the reset is ${String(first?.data.reason)}`);
  await comesTo(listener, wanted);
}

export const resumeCases = [
  serverCase('replay-is-exclusive', 'Who comes back is told what follows their position, all of it, and no snapshot.', async (trial) => {
    await trial.room.put('old', n(0));
    const listener = await trial.synced();
    for (const [at, name] of ['a', 'b', 'c'].entries()) {
      await trial.room.put(name, n(at));
      await listener.tells(name, String(at));
    }
    await trial.room.remove('old');
    await listener.next('deleted');
    const all = listener.told.filter(({ type }) => /^(added|deleted)$/.test(type)).slice(1);
    for (const [at, { id }] of all.entries()) {
      const missed = changesOf(all.slice(at + 1)).map((change) => change.replace(/^\w+/, (type) => (type === 'deleted' ? type : 'told')));
      const again = await trial.listen('', id);
      const seen = (): string[] => changesOf(again.told).map((change) => change.replace(/^\w+/, (type) => (type === 'deleted' ? type : 'told')));
      await again.until(() => seen().length >= missed.length && again.told.length > 0, `${missed.join(', ')} are not told`);
      await pause(100);
      same(seen(), missed, 'what was missed');
      same(again.told.filter(({ type }) => /^(synced|reset)$/.test(type)).length, 0, 'snapshots');
      again.close();
    }
  }),

  serverCase('deletions-while-away', 'What went while a client was away is told as deleted, or it stays on screen for ever.', async (trial) => {
    await trial.room.put('ghost', n(0));
    const position = await positionOf(trial);
    await trial.room.remove('ghost');
    await trial.room.put('new', n(1));
    const listener = await trial.listen('', position);
    await listener.next('deleted', ({ data }) => (data as { metadata: { name: string } }).metadata.name === 'ghost');
    await comesTo(listener, { new: '1' });
  }),

  serverCase('heard-at-once', 'Who has missed nothing is told that, and need not wait for the next change to be live.', async (trial) => {
    await trial.room.put('a', n(0));
    const listener = await trial.listen('', await positionOf(trial));
    await listener.until(() => listener.told.length > 0, 'nothing is told');
    same(listener.told.filter(({ type }) => /^(synced|reset|added)$/.test(type)).length, 0, 'snapshots');
  }),

  serverCase('caught-up', 'The first bookmark comes behind all that was missed, or a client calls what is old up to date.', async (trial) => {
    const position = await positionOf(trial);
    const missed = Array.from({ length: 300 }, (_, at) => `missed-${at}`);
    for (const name of missed) await trial.room.put(name, n(0));
    const current = await trial.synced();
    current.close();
    const listener = await trial.listen('', position);
    await listener.next('bookmark');
    const before = listener.told.slice(0, listener.told.findIndex(({ type }) => type === 'bookmark'));
    same(before.filter(({ type }) => type === 'added').length, missed.length, 'what is told before the first bookmark');
  }),

  serverCase('position-in-the-query', 'An EventSource of a page that was loaded anew, and some libraries, cannot set a header.', async (trial) => {
    const position = await positionOf(trial);
    await trial.room.put('a', n(1));
    for (const parameter of ['lastEventId', 'last_event_id']) {
      const listener = await trial.listen(`?${parameter}=${encodeURIComponent(position)}`);
      await comesTo(listener, { a: '1' });
      same(listener.told.filter(({ type }) => type === 'synced').length, 0, `snapshots with ${parameter}`);
    }
  }),

  serverCase('header-beats-query', 'A browser that reconnects keeps the address, which holds an older position than its header.', async (trial) => {
    const older = await positionOf(trial);
    await trial.room.put('a', n(1));
    const newer = await positionOf(trial);
    await trial.room.put('b', n(2));
    const listener = await trial.listen(`?lastEventId=${encodeURIComponent(older)}`, newer);
    await listener.tells('b', '2');
    same([...listener.state().keys()], ['b'], 'what is told');
  }),

  serverCase('position-that-is-none', 'A position that cannot be read is no error: the client is told everything anew.', async (trial) => {
    await trial.room.put('a', n(1));
    await isReset(await trial.listen('', 'no-position-at-all'), { a: '1' }, /^unreadable$/);
  }),

  serverCase('position-of-elsewhere', 'A position of another cluster, or of another history, is of no use: to go on from it would lose changes in silence.', async (trial) => {
    await trial.room.put('a', n(1));
    const position = await positionOf(trial);
    await isReset(await trial.listen('', `x${position}`), { a: '1' }, /^(epoch|unreadable)$/);
  }),

  serverCase('position-of-the-future', 'A version that does not exist is that of a cluster which was restored: nothing may be waited for.', async (trial) => {
    await trial.room.put('a', n(1));
    const position = await positionOf(trial);
    const ahead = position.replace(/\d+/g, (digits, at: number) => (at > 0 && position[at - 1] === '.' ? `${digits}000000` : digits));
    await isReset(await trial.listen('', ahead), { a: '1' }, /^(ahead|epoch|unreadable)$/);
  }),

  serverCase('position-that-expired', 'A position older than what is remembered leads to everything anew, and never to a gap.', async (trial) => {
    await trial.room.put('a', n(1));
    const position = await positionOf(trial);
    await trial.room.put('b', n(2));
    await trial.room.forget?.();
    await trial.room.put('c', n(3));
    await isReset(await trial.listen('', position), { a: '1', b: '2', c: '3' }, /^expired$/);
  }, 'forgets'),

  serverCase('position-within-a-snapshot', 'A snapshot that is cut begins anew, without a reset: nothing was complete yet.', async (trial) => {
    for (const name of ['a', 'b', 'c']) await trial.room.put(name, n(name));
    const listener = await trial.synced();
    const [first] = listener.told;
    same(first?.type, 'added', 'the first event');
    await trial.room.remove('a');
    const again = await trial.listen('', first?.id);
    await again.next('synced');
    same(again.told[0]?.type, 'added', 'the first event of the second stream');
    await comesTo(again, { b: 'b', c: 'c' });
  }),

  serverCase('bookmark-is-a-position', 'The position of a bookmark is one to come back with.', async (trial) => {
    const listener = await trial.listen('', await positionOf(trial));
    const { id } = await listener.next('bookmark');
    await trial.room.put('a', n(1));
    const again = await trial.listen('', id);
    await comesTo(again, { a: '1' });
    same(again.told.filter(({ type }) => /^(synced|reset)$/.test(type)).length, 0, 'snapshots');
  }),

  serverCase('another-watch', 'A client changes its watches by coming back: what it had goes on, what is new has a snapshot.', async (trial) => {
    const other = await trial.subject.room();
    await trial.room.put('a', n(1));
    await other.put('b', n(1));
    const [one, two] = [`one=${encodeURIComponent(trial.room.path)}`, `two=${encodeURIComponent(other.path)}`];
    const listener = await trial.synced({ path: `/stream?${one}` });
    listener.close();
    await trial.room.put('c', n(2));
    const both = await trial.listen({ path: `/stream?${one}&${two}` }, listener.id);
    await both.next('synced');
    await comesTo(both, { b: '1' }, 'two');
    await comesTo(both, { c: '2' }, 'one');
    same(both.told.filter(({ type, watch }) => type === 'synced' && watch === 'one').length, 0, 'snapshots of the first watch');
  }),
];

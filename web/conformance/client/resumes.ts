// Where a client goes on when its stream has ended, and what it says meanwhile.

import { check, pause, same } from '../case.ts';
import { object } from './server.ts';
import { clientCase } from './trial.ts';

export const resumeCases = [
  clientCase('resumes-behind-the-last', 'Who comes back without a position pays for the whole list with every cut; who comes back with another one loses changes.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('added', object('b', 11), 11);
    await trial.shows('a', 'b');
    connection.cut();
    const next = await trial.next();
    await trial.notLive();
    trial.keeps('a', 'b');
    next.resumesAt(next.id(11)).begin().bookmark(11);
    await trial.shows('a', 'b');
  }),

  clientCase('position-is-opaque', 'A position means something to the server only: it comes back as it was told.', async (trial) => {
    const first = (await trial.next()).begin();
    const id = `${first.id(7)}-x9.~!$&'()*+,;=:@/?`;
    first.write(first.rawFrame('added', JSON.stringify(object('a', 1)), 'e1') + first.rawFrame('synced', '{"resourceVersion":"7","count":1}', id));
    await trial.shows('a');
    first.cut();
    (await trial.next()).resumesAt(id);
  }),

  clientCase('bookmark-moves', 'In a quiet list only bookmarks keep a position from growing too old.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.bookmark(50).tell('expiring', { at: new Date(Date.now() + 60_000).toISOString() }, 50);
    await pause(200); // nothing of it can be seen
    await trial.shows('a');
    connection.cut();
    const next = await trial.next();
    next.resumesAt(next.id(50));
  }),

  clientCase('cut-within-a-frame', 'Half a frame is no event, wherever it is cut, and its id no position.', async (trial) => {
    let connection = await trial.has([object('a', 1)]);
    const whole = connection.frame('added', object('b', 12), 12);
    const cuts = [whole.indexOf('\n') + 1, whole.indexOf('12\n') + 1, whole.indexOf('12\n') + 3, whole.indexOf('"kind"'), whole.length - 2, whole.length - 1];
    for (const [n, at] of cuts.entries()) {
      connection.write(whole.slice(0, at)).cut();
      connection = await trial.next();
      connection.resumesAt(connection.id(10 + (n > 0 ? 1 : 0))).begin().bookmark(11);
      await trial.shows('a');
    }
    connection.write(whole);
    await trial.shows('a', 'b');
  }),

  clientCase('snapshot-cut', 'A snapshot that is cut begins anew: what it had told may be gone by then.', async (trial) => {
    const connection = (await trial.next()).begin().tell('added', object('ghost', 1), 0).tell('added', object('a', 2), 0);
    connection.cut();
    const next = (await trial.next()).begin();
    await trial.staysNotLive();
    next.snapshot([object('a', 2)], 12);
    await trial.shows('a');
  }),

  clientCase('told-again', 'What was told before a cut may be told again after it, and is no second row.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('added', object('b', 11), 11);
    await trial.shows('a', 'b');
    connection.cut();
    (await trial.next()).begin().tell('added', object('b', 11), 11).tell('modified', object('a', 1), 11).tell('deleted', object('c', 9), 11).bookmark(11);
    await trial.shows('a@1', 'b@11');
  }),

  clientCase('reset', 'Events were missed: until the new snapshot is whole, what is shown is old, and then nothing of it is left that is not there.', async (trial) => {
    const connection = await trial.has([object('a', 1), object('ghost', 2)]);
    connection.tell('reset', { reason: 'slow' }, 0);
    await trial.notLive();
    connection.tell('added', object('a', 20), 0);
    await trial.staysNotLive();
    connection.synced(1, 20);
    await trial.shows('a@20');
  }),

  clientCase('reset-cut', 'A cut behind a reset leaves a position that names nothing, and the snapshot comes without a second reset.', async (trial) => {
    const connection = await trial.has([object('a', 1), object('ghost', 2)]);
    connection.tell('reset', { reason: 'expired' }, 0).tell('added', object('b', 20), 0);
    await trial.notLive();
    connection.cut();
    const next = (await trial.next()).begin();
    await trial.staysNotLive();
    next.tell('added', object('c', 21), 0);
    await trial.staysNotLive();
    next.synced(1, 21);
    await trial.shows('c');
  }),

  clientCase('poisoned-frame', 'A frame that cannot be read is a change that is lost: to skip it is to show what is not true, and to ask for it for ever is no better.', async (trial) => {
    let connection = await trial.has([object('a', 1)]);
    const poison = connection.rawFrame('modified', '{"metadata":{"name":"a",', connection.id(11));
    for (let asked = 0; ; asked++) {
      check(asked < 5, 'the frame is asked for again and again');
      connection.write(poison).bookmark(12);
      connection = await trial.next();
      if (['', connection.id(0)].includes(connection.position)) break;
      connection.resumesAt(connection.id(10)).begin();
    }
    connection.begin().snapshot([object('a', 12)], 12);
    await trial.shows('a@12');
  }),

  clientCase('object-without-identity', 'An object without a uid is as unreadable as no JSON.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('modified', { metadata: { name: 'a' } }, 11);
    const next = await trial.next();
    next.resumesAt(next.id(10)).begin().tell('modified', object('a', 11), 11).bookmark(11);
    await trial.shows('a@11');
  }),

  clientCase('drained', 'A gateway that is replaced says goodbye: the client comes back behind it when it was asked to, and loses nothing.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    const said = performance.now();
    connection.write('retry: 600\n\n').goodbye('drain', 30);
    const next = await trial.next();
    check(performance.now() - said > 500, 'the client came back before it was asked to');
    next.resumesAt(next.id(30)).begin().tell('added', object('b', 31), 31).bookmark(31);
    await trial.shows('a', 'b');
  }),

  clientCase('retry', 'After a cut, ten thousand clients come back as spread as they were told.', async (trial) => {
    const connection = await trial.has([object('a', 1)], 10, 600);
    const cut = performance.now();
    connection.cut();
    const next = await trial.next();
    check(performance.now() - cut > 500, 'the client came back before it was asked to');
    next.resumesAt(next.id(10));
  }),

  clientCase('position-outlives-failures', 'Attempts that fail on the way do not cost the position.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.cut();
    (await trial.next()).cut();
    (await trial.next()).refuse(502);
    (await trial.next()).beginSilently().end();
    const next = await trial.next();
    next.resumesAt(next.id(10)).begin().tell('added', object('b', 11), 11).bookmark(11);
    await trial.shows('a', 'b');
  }),

  clientCase('caught-up', 'Behind a position, what was missed comes in parts: what is shown is old until the first bookmark, and says so.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.cut();
    const next = await trial.next();
    next.resumesAt(next.id(10)).begin().tell('added', object('b', 11), 11);
    await trial.staysNotLive();
    next.tell('added', object('c', 12), 12);
    await trial.staysNotLive();
    next.bookmark(12);
    await trial.shows('a', 'b', 'c');
  }),

  clientCase('ends-well', 'An answer that ends as answers do is a stream that has ended, and not a list that is complete.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.end();
    const next = await trial.next();
    await trial.notLive();
    next.resumesAt(next.id(10)).begin().bookmark(10);
    await trial.shows('a');
    await pause(50);
    same(trial.server.connections.length, 2, 'connections');
  }),
];

// Which rows a client shows, while nothing breaks.

import { pause, same, until } from '../case.ts';
import { object } from './server.ts';
import { clientCase } from './trial.ts';

const utf8 = new TextEncoder();

export const rowCases = [
  clientCase('snapshot-whole', 'Half a list looks like a list: who reads it believes that the rest is gone.', async (trial) => {
    const connection = (await trial.next()).begin();
    await trial.staysNotLive();
    connection.tell('added', object('a', 1), 0).tell('added', object('b', 2), 0);
    await trial.staysNotLive();
    connection.synced(2, 2);
    await trial.shows('a', 'b');
  }),

  clientCase('snapshot-of-nothing', 'An empty list is an answer, and not a page that loads for ever.', async (trial) => {
    await trial.has([]);
  }),

  clientCase('changes', 'Additions, modifications and deletions lead to what the server has.', async (trial) => {
    const connection = await trial.has([object('a', 1), object('b', 2)]);
    connection.tell('modified', object('a', 11), 11).tell('deleted', object('b', 12), 12).tell('added', object('c', 13), 13);
    await trial.shows('a@11', 'c@13');
  }),

  clientCase('upserts', 'After an absence an event may be told of an object as if the client had it, or had it not.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('modified', object('b', 11), 11).tell('added', object('a', 12), 12).tell('deleted', object('never', 13), 13);
    connection.tell('added', object('c', 14), 14);
    await trial.shows('a@12', 'b@11', 'c@14');
  }),

  clientCase('same-name-elsewhere', 'Objects of two namespaces have the same name: one hides the other where rows are kept by name.', async (trial) => {
    const [here, there] = [object('a', 1), object('a', 2, { uid: 'other', namespace: 'team-b' })];
    const connection = await trial.has([here, there]);
    connection.tell('deleted', object('a', 11, { uid: 'other', namespace: 'team-b' }), 11);
    await trial.shows('a@1');
  }),

  clientCase('made-anew', 'An object that is deleted and made anew under its name is another one.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('deleted', object('a', 11), 11).tell('added', object('a', 12, { uid: 'second' }), 12);
    await trial.shows('a@12');
    same([...trial.client.rows()].map(({ metadata }) => metadata.uid), ['second'], 'the uids that are shown');
  }),

  clientCase('names-of-the-language', 'A uid or a name can be what the language has a meaning for, such as __proto__.', async (trial) => {
    const odd = ['__proto__', 'constructor', 'toString'];
    await trial.has(odd.map((name) => object(name, 1, { uid: name })));
  }),

  clientCase('versions-are-text', 'Versions are longer than a number of JavaScript is exact.', async (trial) => {
    await trial.has([object('a', '9223372036854775807')]);
  }),

  clientCase('byte-by-byte', 'Bytes come in pieces of any size, also within a character.', async (trial) => {
    const connection = (await trial.next()).begin();
    const told = object('a', 1, { data: { note: 'ein Bär – 熊 – 🐻' } });
    for (const byte of utf8.encode(connection.frame('added', told, 0) + connection.frame('synced', { resourceVersion: '10', count: 1 }, 10))) {
      connection.write(Uint8Array.of(byte));
    }
    await trial.shows('a');
    const [row] = trial.client.rows();
    same((row as { data?: unknown } | undefined)?.data, { note: 'ein Bär – 熊 – 🐻' }, 'the text');
  }),

  clientCase('many-at-once', 'A snapshot of thousands comes in one piece.', async (trial) => {
    const connection = (await trial.next()).begin();
    const all = Array.from({ length: 2_000 }, (_, n) => object(`n${n}`, 1));
    connection.write(all.map((one) => connection.frame('added', one, 0)).join('')).synced(all.length, 10);
    await trial.shows(...all.map(({ metadata }) => metadata.name));
  }),

  clientCase('unknown-is-passed-over', 'A newer server says more: other events, fields and comments.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.write(': a comment\n\nfield: of another kind\n\n').tell('hologram', { any: 'thing' }, 11);
    connection.write(`event: hologram\nid: ${connection.id(11)}\ndata: no JSON\n\n`).tell('added', object('b', 12), 12);
    await trial.shows('a', 'b');
    same(trial.server.connections.length, 1, 'connections');
  }),

  clientCase('narrowed', 'What may not be seen any more goes, told by no more than its name.', async (trial) => {
    const connection = await trial.has([object('a', 1), object('b', 2, { namespace: 'team-b' })]);
    connection.tell('narrowed', { namespaces: ['team-a'] }, 10).tell('deleted', object('b', 2, { namespace: 'team-b' }), 10);
    await trial.shows('a');
    connection.tell('widened', { all: true, namespaces: [] }, 10).tell('added', object('b', 2, { namespace: 'team-b' }), 10);
    await trial.shows('a', 'b');
  }),

  clientCase('patches', 'A merge patch leads to the object, and to its version.', async (trial) => {
    const connection = await trial.has([object('a', 1, { data: { keep: '1', drop: '1', change: '1' } })]);
    connection.tell('patched', { uid: 'uid-a', resourceVersion: '11', patch: { data: { drop: null, change: '2' } } }, 11);
    await trial.shows('a@11');
    const [row] = trial.client.rows();
    same((row as { data?: unknown } | undefined)?.data, { keep: '1', change: '2' }, 'the data');
  }, 'deltas'),

  clientCase('patch-of-nothing', 'A patch of what the client does not have says that something was lost: it is asked for again.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('patched', { uid: 'uid-lost', resourceVersion: '11', patch: { data: { x: '1' } } }, 11);
    (await trial.next()).resumesAt('').begin().snapshot([object('a', 1), object('lost', 11)], 11);
    await trial.shows('a', 'lost');
  }, 'deltas'),

  clientCase('close-is-the-end', 'A page that is left holds no stream, and asks for none.', async (trial) => {
    const connection = await trial.has([object('a', 1)], 10, 10);
    trial.client.close();
    await until(() => connection.closed, () => 'the stream is not let go');
    await pause(300);
    same(trial.server.waiting, 0, 'connections after that');
  }),
];

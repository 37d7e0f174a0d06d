// Answers that are no stream, or one that says nothing.

import { check, pause, same } from '../case.ts';
import { object, type Connection } from './server.ts';
import { clientCase } from './trial.ts';

/** So many attempts within two seconds are a flood. */
const flood = 25;

const gone = (name: string, why: string, refuse: (connection: Connection) => void) =>
  clientCase(name, why, async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.cut();
    refuse(await trial.next());
    const count = 1 + (await trial.server.count(2_000, refuse));
    check(count < flood, `the client asked ${count} times within two seconds`);
    await trial.staysNotLive();
  });

export const answerCases = [
  gone('refused', 'Who may not see it any more is no longer shown it as live, and does not ask for ever as fast as it can.', (connection) => connection.refuse(403)),
  gone('signed-out', 'Without credentials nothing is live, and asking on and on makes none.', (connection) => connection.refuse(401, { 'WWW-Authenticate': 'Bearer' })),
  gone('position-refused', 'A proxy, or a server of another make, may refuse a position (410): that is nothing to be called live, nor to hammer at.', (connection) => connection.refuse(410)),
  gone('revoked', 'A goodbye is the end of something, and no sign of life.', (connection) => connection.begin().goodbye('revoked', 10)),
  gone('unavailable', 'A gateway that was never able to read its cluster says so with every stream: old rows stay old.', (connection) => connection.begin().goodbye('unavailable', 10)),
  gone('nobody-there', 'A gateway that is away is asked less and less often, or it never comes up.', (connection) => connection.cut()),
  gone('ends-at-once', 'A proxy whose upstream is away may end each stream as soon as it has begun.', (connection) => connection.begin().end()),

  clientCase('first-refused', 'Who may not see a list is told that, and not that it is empty.', async (trial) => {
    (await trial.next()).refuse(403);
    const count = 1 + (await trial.server.count(1_000, (connection) => connection.refuse(403)));
    check(count < flood, `the client asked ${count} times within a second`);
    await trial.staysNotLive();
    trial.keeps();
  }),

  clientCase('too-many', 'A 429 says when to come back: not before, and then it is all good.', async (trial) => {
    const refused = await trial.next();
    refused.refuse(429, { 'Retry-After': '1' });
    const since = performance.now();
    const next = await trial.next(15_000);
    check(performance.now() - since > 900, 'the client came back before it was asked to');
    next.begin().snapshot([object('a', 1)], 10);
    await trial.shows('a');
  }),

  clientCase('away-for-a-moment', 'A 503 of a load balancer passes.', async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.cut();
    (await trial.next()).refuse(503);
    const next = await trial.next();
    await trial.notLive();
    next.resumesAt(next.id(10)).begin().bookmark(10);
    await trial.shows('a');
  }),

  clientCase('wrong-type', 'A page to sign in at, or of an error, comes with status 200: it is no stream, and no reason to give up.', async (trial) => {
    (await trial.next()).beginSilently('text/html').end('<!doctype html><title>Sign in</title>\n\ndata: {}\n\n');
    await trial.staysNotLive();
    (await trial.next()).begin().snapshot([object('a', 1)], 10);
    await trial.shows('a');
  }),

  clientCase('no-bytes', 'A proxy that holds back what comes, or a head without a body: somebody has to lose patience.', async (trial) => {
    (await trial.next()).beginSilently();
    const next = await trial.next(trial.silence * 1.5 + 10_000);
    await trial.staysNotLive(50);
    next.begin().snapshot([object('a', 1)], 10);
    await trial.shows('a');
  }),

  clientCase('half-open', 'A connection that nobody closed is no connection: what has been silent for too long is not live.', async (trial) => {
    (await trial.has([object('a', 1)])).silence();
    const next = await trial.next(trial.silence * 1.5 + 10_000);
    await trial.notLive();
    trial.keeps('a');
    next.resumesAt(next.id(10)).begin().bookmark(10);
    await trial.shows('a');
  }),

  clientCase('heartbeats-are-life', 'A comment is enough to know that the stream stands: nothing is asked for anew in a quiet list.', async (trial) => {
    const connection = (await trial.has([object('a', 1)])).silence();
    const beat = setInterval(() => connection.write(':\n\n'), trial.silence / 5);
    await pause(trial.silence * 1.3);
    clearInterval(beat);
    same(trial.server.waiting, 0, 'connections besides the first');
    await trial.shows('a');
  }),

  clientCase('stale', "The gateway's own watch is lost: what it tells is old, though the stream stands.", async (trial) => {
    const connection = await trial.has([object('a', 1)]);
    connection.tell('stale', { since: new Date(Date.now() - 60_000).toISOString(), reason: 'unreachable' }, 10);
    await trial.notLive();
    connection.tell('modified', object('a', 11), 11);
    await trial.staysNotLive();
    connection.tell('live', { since: new Date().toISOString(), reason: 'live' }, 11);
    await trial.shows('a@11');
  }),
];

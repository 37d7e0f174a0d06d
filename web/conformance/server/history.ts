// What jobs went through, as it is listed and as it is told; and what cannot be asked of histories, notifications and logs.

import { check, Failure, pause, same, type Case } from '../case.ts';
import type { ServerSubject } from './subject.ts';
import { serverCase, type Trial } from './trial.ts';

interface Item {
  readonly name: string;
  readonly uid: string;
  readonly state?: string;
  readonly to?: string;
  readonly seq?: string;
}
interface Page {
  readonly items: readonly Item[];
  readonly continue: string;
}

/** Recording takes its time: a database is written. */
const patience = 60_000;

const jobsOf = ({ room }: Trial): NonNullable<Trial['room']['jobs']> => {
  if (!room.jobs) throw new Failure('the room has no jobs');
  return room.jobs;
};

async function page(trial: Trial, query: string): Promise<Page> {
  const response = await trial.ask(jobsOf(trial).path + query, { headers: { Accept: 'application/json' } });
  same(response.status, 200, `the status of ${query}`);
  return (await response.json()) as Page;
}

/** Asks until the history has come to it. */
async function recorded(trial: Trial, query: string, holds: (page: Page) => boolean): Promise<Page> {
  const deadline = performance.now() + patience;
  for (;;) {
    const now = await page(trial, query);
    if (holds(now)) return now;
    check(performance.now() < deadline, `${query} does not come to what was done: ${JSON.stringify(now.items.map(({ name, state, to }) => [name, state ?? to]))}`);
    await pause(50);
  }
}

async function status(trial: Trial, path: string, init?: RequestInit): Promise<number> {
  const response = await trial.ask(path, init);
  await response.body?.cancel(); // it may be a stream that should not have begun
  return response.status;
}

const states = ({ items }: Page): string[] => items.map(({ state, to }) => state ?? to ?? '');

export const historyCases: readonly Case<ServerSubject>[] = [
  serverCase('history-keeps-what-is-gone', 'Who comes back after a week finds the job that was cleared away.', async (trial) => {
    await jobsOf(trial).submit('train');
    const there = await recorded(trial, '?search=TRAI', ({ items }) => items.length === 1);
    await jobsOf(trial).withdraw('train');
    const gone = await recorded(trial, '?state=Deleted', ({ items }) => items.length === 1);
    same(gone.items.map(({ uid }) => uid), there.items.map(({ uid }) => uid), 'the uid');
    const { items } = await recorded(trial, '?view=transitions', (now) => states(now)[0] === 'Deleted');
    same([...new Set(items.map(({ seq }) => seq))].length, items.length, 'numbers');
    same((await page(trial, '?state=Succeeded')).items, [], 'those of another state');
  }, 'history'),

  serverCase('history-pages', 'Pages are one list, and a token belongs to its question.', async (trial) => {
    for (const name of ['a', 'b', 'c']) await jobsOf(trial).submit(name);
    await recorded(trial, '', ({ items }) => items.length === 3);
    const first = await page(trial, '?limit=2');
    const rest = await page(trial, `?limit=2&continue=${encodeURIComponent(first.continue)}`);
    same([...first.items, ...rest.items].map(({ name }) => name).sort(), ['a', 'b', 'c'], 'the pages');
    same(rest.continue, '', 'the token of the last page');
    same((await page(trial, `?limit=1000&continue=${encodeURIComponent(first.continue)}`)).items.map(({ name }) => name), rest.items.map(({ name }) => name), 'the rest by a page of another length');
    same(await status(trial, `${jobsOf(trial).path}?search=a&continue=${encodeURIComponent(first.continue)}`), 400, 'the status of another question');
  }, 'history'),

  serverCase('history-is-told', 'What happens to jobs is told as it happens, once, also to who was away.', async (trial) => {
    await jobsOf(trial).submit('train');
    await recorded(trial, '', ({ items }) => items.length === 1);
    const listener = await trial.listen({ path: jobsOf(trial).path });
    await listener.next('synced', undefined, patience);
    const [first] = listener.told;
    check(first?.type === 'transition' && first.data.name === 'train', 'the newest come before synced');
    listener.close();
    await jobsOf(trial).withdraw('train');
    const again = await trial.listen({ path: jobsOf(trial).path }, listener.id);
    await again.next('transition', ({ data }) => data.to === 'Deleted', patience);
    const before = new Set(listener.told.map(({ data }) => data.seq));
    same(again.told.filter(({ type, data }) => type === 'transition' && before.has(data.seq)).length, 0, 'what is told twice');
  }, 'history'),

  serverCase('history-unknown-parameter', 'What is misspelled, or has no meaning, is refused: it would show more than was meant.', async (trial) => {
    const { path } = jobsOf(trial);
    for (const query of ['?stat=Failed', '?view=none', '?limit=0', '?since=yesterday', '?view=runs&state=Failed', '?view=usage&step=1s&since=1h', '?view=ends&by=state', '?view=spec']) same(await status(trial, path + query), 400, query);
  }, 'history'),

  serverCase('reasons', 'What has the same status is told apart by a word: a page that shows nothing kept where nothing is recorded sends people looking for it.', async (trial) => {
    const { path } = jobsOf(trial);
    const reason = async (of: string): Promise<unknown> => {
      const response = await trial.ask(of, { headers: { Accept: 'application/json' } });
      const said = (await response.json()) as { status?: unknown; detail?: unknown; reason?: unknown };
      same([response.status, typeof said.detail, response.headers.get('Content-Type')], [said.status, 'string', 'application/problem+json'], `the problem of ${of}`);
      return [said.status, said.reason];
    };
    same(await reason(`/history${trial.room.path}`), [404, 'NotRecorded'], 'a kind of which no history is kept');
    same(await reason(`${path}/none?view=spec&uid=none`), [404, 'NotKept'], 'what nobody kept');
    same(await reason(`${path}?view=none`), [400, 'BadRequest'], 'what cannot be understood');
    same(await reason('/notifications?undread=true'), [400, 'BadRequest'], 'what is misspelled');
    same(await reason('/logs/api/v1/nodes/none?view=lines'), [404, 'NotFound'], 'what has no logs');
  }, 'history'),

  serverCase('notifications', 'Marks and settings are taken as they are meant, or refused.', async (trial) => {
    const response = await trial.ask('/notifications');
    const { items, unread } = (await response.json()) as { items: unknown; unread: unknown };
    same([response.status, Array.isArray(items), typeof unread], [200, true, 'number'], 'the list');
    const put = (body: string): Promise<number> => status(trial, '/notifications/settings', { method: 'PUT', headers: { 'Content-Type': 'application/json' }, body });
    same(await put('{"states":["Failed"],"digest":"5m"}'), 200, 'the status of settings');
    const kept = (await (await trial.ask('/notifications/settings')).json()) as { states: unknown; pausedUntil: unknown };
    same([kept.states, kept.pausedUntil], [['Failed'], null], 'the settings');
    for (const body of ['{"state":["Failed"]}', '{"states":["Lost"]}', '{"digest":"48h"}', 'no']) same(await put(body), 400, body);
    const read = (body: string): Promise<number> => status(trial, '/notifications/read', { method: 'POST', headers: { 'Content-Type': 'application/json' }, body });
    same(await read('{"ids":["1"]}'), 204, 'the status of a mark');
    same(await read('{"upTo":"1","ids":["1"]}'), 400, 'the status of two marks');
    same(await status(trial, '/notifications?undread=true'), 400, 'the status of what is misspelled');
    const { data } = await (await trial.listen({ path: '/notifications?limit=0' })).next('synced', undefined, patience);
    same([typeof data.seq, data.count, typeof data.unread], ['string', 0, 'number'], 'synced');
  }, 'history'),

  serverCase('logs-are-asked-for', 'A log that is asked for wrongly is refused, one that is not there is no empty one, and a pod that is yet to come is waited for.', async (trial) => {
    const [, namespace = ''] = /namespaces\/([^/]+)/.exec(trial.room.path) ?? [];
    const stream = { headers: { Accept: 'text/event-stream' } };
    const pods = `/logs/api/v1/namespaces/${namespace}/pods`;
    for (const query of ['?tail=3', '?tailLines=-1', '?sinceTime=now', '?follow=perhaps']) same(await status(trial, pods + query, stream), 400, query);
    same(await status(trial, `${pods}/none`, stream), 200, 'the status of a pod that may come');
    same(await status(trial, `/api/v1/namespaces/${namespace}/pods/none/log`), 404, 'the status of a log that is not there');
    const { data } = await (await trial.listen({ path: pods })).next('synced', undefined, patience);
    same(data, { lines: 0 }, 'synced');
  }, 'history'),

  serverCase('logs-are-questioned', 'A question about a log is answered, or refused: a stretch that nobody asked for is none.', async (trial) => {
    const [, namespace = ''] = /namespaces\/([^/]+)/.exec(trial.room.path) ?? [];
    const pods = `/logs/api/v1/namespaces/${namespace}/pods`;
    const ask = async (query: string): Promise<unknown> => (await trial.ask(pods + query, { headers: { Accept: 'application/json' } })).json();
    same(await ask('?view=lines&from=3'), { from: 3, items: [], count: 0, complete: true }, 'a stretch of nothing');
    same(await ask('?view=search&search=x&ignoreCase=true'), { matches: [], count: 0, complete: true }, 'matches in nothing');
    same(await ask('?view=lines&limit=0'), { from: 0, items: [], count: 0, complete: false }, 'who asks for nothing learns nothing');
    same(await status(trial, `${pods}/none?view=lines`), 200, 'the status of a pod that is not there');
    for (const query of ['?view=none', '?view=search', '?view=lines&search=x', '?view=lines&tailLines=3', '?view=lines&from=-1', '?view=lines&limit=2001', '?view=lines&time=now', '?view=search&search=x&time=2026-01-01T00:00:00Z', '?view=search&search=x&ignoreCase=perhaps']) same(await status(trial, pods + query), 400, query);
  }, 'history'),
];

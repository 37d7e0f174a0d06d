// Lists and their pages, counts, and what of these is live.

import { check, same } from '../case.ts';
import { serverCase, type Trial } from './trial.ts';
import type { Thing } from './subject.ts';

const n = (value: number | string): { data: { n: string } } => ({ data: { n: String(value) } });

interface List {
  readonly items: readonly Thing[];
  readonly metadata: { readonly resourceVersion: string; readonly continue?: string };
}

async function list(trial: Trial, query = ''): Promise<List> {
  const response = await trial.ask(trial.room.path + query, { headers: { Accept: 'application/json' } });
  same(response.status, 200, `GET ${query}`);
  return (await response.json()) as List;
}

const names = ({ items }: List): string[] => items.map(({ metadata }) => metadata.name);

async function fill(trial: Trial): Promise<void> {
  for (const [name, value] of [['b', 2], ['c', 1], ['a', 3], ['d', 1]] as const) await trial.room.put(name, { ...n(value), labels: { team: `t${value}` } });
  await trial.known();
}

export const listCases = [
  serverCase('list-is-the-snapshot', 'A list and the snapshot of a stream are the same objects.', async (trial) => {
    await fill(trial);
    const listener = await trial.synced();
    const told = [...listener.state().values()].map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort();
    same((await list(trial)).items.map(({ metadata }) => `${metadata.uid} ${metadata.resourceVersion}`).sort(), told, 'the list');
  }, 'lists'),

  serverCase('unchanged-is-not-sent', 'What is unchanged is 304, and what has changed is not.', async (trial) => {
    await fill(trial);
    const first = await trial.ask(trial.room.path);
    await first.text();
    const tag = first.headers.get('ETag') ?? '';
    check(tag !== '', 'a list has an ETag');
    const ask = async (): Promise<number> => {
      const answer = await trial.ask(trial.room.path, { headers: { 'If-None-Match': tag } });
      await answer.text();
      return answer.status;
    };
    same(await ask(), 304, 'the status of what is unchanged');
    const listener = await trial.synced();
    await trial.room.put('e', n(5));
    await listener.tells('e', '5');
    same(await ask(), 200, 'the status of what has changed');
  }, 'lists'),

  serverCase('pages-are-of-one-version', 'Pages are one list, whatever is written between them.', async (trial) => {
    await fill(trial);
    const first = await list(trial, '?limit=3');
    const listener = await trial.synced();
    await trial.room.remove('d');
    await trial.room.put('aa', n(9));
    await listener.tells('aa', '9');
    const second = await list(trial, `?limit=3&continue=${encodeURIComponent(first.metadata.continue ?? '')}`);
    same([...names(first), ...names(second)], ['a', 'b', 'c', 'd'], 'the pages');
    same(second.metadata.resourceVersion, first.metadata.resourceVersion, 'the version');
    const odd = await trial.ask(`${trial.room.path}?limit=3&continue=none`);
    await odd.text();
    check([400, 410].includes(odd.status), `a token that is none is answered with ${odd.status}`);
  }, 'lists'),

  serverCase('sorted-and-searched', 'Sorting and searching is the same for all of a list as for its part on screen.', async (trial) => {
    await fill(trial);
    same(names(await list(trial, '?sort=data.n')), ['c', 'd', 'b', 'a'], 'by data.n');
    same(names(await list(trial, '?sort=-data.n&limit=2')), ['a', 'b'], 'by data.n, the greatest first');
    same(names(await list(trial, '?search=C')), ['c'], 'what is found');
    same(names(await list(trial, '?labelSelector=team%3Dt1')).sort(), ['c', 'd'], 'what is selected');
  }, 'lists'),

  serverCase('counts', 'How many there are of each value needs no list.', async (trial) => {
    await fill(trial);
    const { counts } = (await list(trial, '?countBy=data.n')) as unknown as { counts: unknown };
    same(counts, [{ value: '1', count: 2 }, { value: '2', count: 1 }, { value: '3', count: 1 }], 'the counts');
  }, 'lists'),

  serverCase('live-counts', 'Counts are told whenever they change, all of them each time.', async (trial) => {
    await fill(trial);
    const listener = await trial.listen('?countBy=data.n');
    const says = (wanted: unknown): Promise<void> => listener.until(() => JSON.stringify(listener.told.at(-1)?.data.counts) === JSON.stringify(wanted), 'the counts');
    await says([{ value: '1', count: 2 }, { value: '2', count: 1 }, { value: '3', count: 1 }]);
    await trial.room.remove('b');
    await says([{ value: '1', count: 2 }, { value: '3', count: 1 }]);
  }, 'lists'),

  serverCase('live-page', 'A page tells what stands on its places, in order, and how many there are.', async (trial) => {
    await fill(trial);
    const listener = await trial.listen('?limit=2&sort=-data.n');
    const page = (): string[] => {
      const uids = (listener.told.findLast(({ type }) => type === 'page')?.data.uids ?? []) as string[];
      const byUid = new Map([...listener.state().values()].map(({ metadata }) => [metadata.uid, metadata.name]));
      return uids.map((uid) => byUid.get(uid) ?? '?');
    };
    await listener.until(() => page().join() === 'a,b', 'the page is not a, b');
    same(listener.told.findLast(({ type }) => type === 'page')?.data.total, 4, 'the total');
    await trial.room.put('d', n(7));
    await listener.until(() => page().join() === 'd,a', 'the page is not d, a');
    same(listener.told.findLast((told) => told.type === 'deleted')?.data.reason, 'moved', 'why b left');
  }, 'lists'),
];

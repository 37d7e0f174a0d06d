// Questions about stretches of logs, which are answered at once: `view=lines` and `view=search` below "Logs" in the wire contract.

import type { LogsOf, MockLogs } from './logs.ts';
import { BadQuery, whole } from './query.ts';
import type { Entry } from './told.ts';

type Item = Readonly<Record<string, unknown>> & { readonly type: string; readonly text?: string; readonly time?: string };
/** With its place in time. */
interface Timed {
  readonly time: number;
  readonly item: Item;
}

const own = ['view', 'from', 'limit', 'time', 'context', 'ignoreCase', 'search'];
/** What a view does not take of what the others, or a stream, do. */
const others: Readonly<Record<string, readonly string[]>> = { lines: ['search', 'ignoreCase', 'context'], search: ['time'] };
const ofStreams = ['tailLines', 'sinceTime', 'sinceSeconds', 'follow'];

/** The answer to a question. Throws {@link BadQuery}. */
export function answerView(logs: MockLogs, query: URLSearchParams, of: LogsOf): object {
  const view = query.get('view') ?? '';
  const none = [...ofStreams, ...(others[view] ?? [])].find((key) => query.has(key));
  if (!others[view]) throw new BadQuery(`view: ${JSON.stringify(view)} is neither lines nor search`);
  if (none) throw new BadQuery(`${none}: there is no such parameter of view=${view}`);
  const number = (key: string, otherwise: number, most: number): number => (query.get(key) ? whole(key, query.get(key) ?? '', 0, most) : otherwise);
  const from = number('from', 0, 2 ** 31 - 1);
  const context = number('context', 0, 20);
  const limit = number('limit', view === 'lines' ? 1_000 : 200, 2_000);
  const items = itemsOf(logs, query, of);
  const first = items.find(({ item }) => item.type === 'line')?.item.time;
  const answer = view === 'lines' ? linesOf(items, from, limit, query.get('time') ?? '') : matchesOf(items, { from, limit, context, contains: containsOf(query) });
  return { ...(first !== undefined && { first }), ...answer };
}

/** All of the last two runs of each container that is selected, by time. A line is no earlier than the one before it. */
function itemsOf(logs: MockLogs, query: URLSearchParams, of: LogsOf): readonly Timed[] {
  const selects = new URLSearchParams([...query].filter(([key]) => !own.includes(key)));
  const { matches, shape } = logs.follow(selects, of);
  const last = new Map<string, { time: number; restart: number }>();
  const keyOf = ({ data }: Entry): string => ['namespace', 'pod', 'container'].map((key) => (data as Item)[key]).join('/');
  const there = logs.entries.filter((entry) => matches(entry));
  for (const entry of there) last.set(keyOf(entry), { time: -Infinity, restart: Number((entry.data as Item).restart ?? last.get(keyOf(entry))?.restart ?? 0) });
  if (last.size > 8) throw new BadQuery('this selects more than the 8 containers whose logs one question may read', 422);
  const kept = there.filter((entry) => Number((entry.data as Item).restart ?? 0) >= (last.get(keyOf(entry))?.restart ?? 0) - 1);
  const timed = kept.map((entry) => {
    const container = last.get(keyOf(entry));
    const time = Math.max(container?.time ?? -Infinity, Date.parse((entry.data as Item).time ?? '') || -Infinity);
    if (container) container.time = time;
    return { time, item: { type: entry.type, ...shape?.(entry.data) } };
  });
  return timed.sort((a, b) => a.time - b.time);
}

/** So many items from a place on. It looks no further than it has to, and only the end of all is the end. */
function linesOf(items: readonly Timed[], from: number, limit: number, time: string): object {
  const at = time === '' ? undefined : /^\d{4}-\d\d-\d\dT/.test(time) ? Date.parse(time) : NaN;
  if (Number.isNaN(at)) throw new BadQuery(`time: ${JSON.stringify(time)} is not a time such as 2026-01-31T09:00:00.123Z`);
  const told: Item[] = [];
  let index: number | undefined;
  let count = 0;
  for (const { time: is, item } of items) {
    const isPlaced = at === undefined || index !== undefined;
    if (isPlaced && told.length >= limit) break;
    if (!isPlaced && item.type === 'line' && is >= at) index = count;
    if (++count > from && told.length < limit) told.push(item);
  }
  const isFull = (at === undefined || index !== undefined) && told.length >= limit;
  return { from, items: told, count, ...(index !== undefined && { index }), complete: count === items.length && !isFull };
}

/** The lines that contain a text, each with what stands beside it. */
function matchesOf(items: readonly Timed[], { from, limit, context, contains }: { readonly from: number; readonly limit: number; readonly context: number; readonly contains: (text: string) => boolean }): object {
  const all = items.map(({ item }) => item);
  const places = all.flatMap(({ type, text = '' }, index) => (index >= from && type === 'line' && contains(text) ? [index] : [])).slice(0, limit);
  const matches = places.map((index) => {
    const [before, after] = [all.slice(Math.max(0, index - context), index), all.slice(index + 1, index + 1 + context)];
    return { index, item: all[index], ...(before.length > 0 && { before }), ...(after.length > 0 && { after }) };
  });
  const isFull = places.length === limit;
  const needed = (places.at(-1) ?? -1) + 1 + (isFull ? context : 0);
  return { matches, count: isFull ? Math.min(all.length, needed) : all.length, complete: !isFull || needed > all.length };
}

function containsOf(query: URLSearchParams): (text: string) => boolean {
  const search = query.get('search') ?? '';
  const ignoreCase = query.get('ignoreCase') ?? '';
  if (search === '') throw new BadQuery('search: what is looked for has to be given');
  if (!['', 'true', 'false'].includes(ignoreCase)) throw new BadQuery(`ignoreCase: ${JSON.stringify(ignoreCase)} is neither true nor false`);
  const folded = (text: string): string => (ignoreCase === 'true' ? text.toLowerCase() : text);
  // Without the colours of a terminal (ECMA-48, SGR).
   
  return (text) => folded(text.replaceAll(/\u001b\[[ -?]*[@-~]/g, '')).includes(folded(search));
}

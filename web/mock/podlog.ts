// The log of one container as an API server answers it, and lines as text: what `kubectl logs` and `curl` have.

import type { MockLogs, Line } from './logs.ts';
import { sinceOf } from './logs.ts';
import type { MockResponse } from './memory.ts';
import { BadQuery, whole } from './query.ts';
import type { ToldWatch } from './stream.ts';
import type { Entry } from './told.ts';

/** `GET /api/v1/namespaces/NS/pods/NAME/log`. Throws {@link BadQuery}. */
export function answerLog(logs: MockLogs, namespace: string, pod: string, query: URLSearchParams, response: MockResponse): void {
  if (!logs.has(namespace, pod)) throw new BadQuery(`pods "${pod}" not found`, 404);
  const all = logs.containersOf(namespace, pod);
  const asked = query.get('container');
  if (!asked && all.length > 1) throw new BadQuery(`a container name must be specified for pod ${pod}, choose one of: [${all.join(' ')}]`);
  const container = asked ?? all[0] ?? '';
  if (!all.includes(container)) throw new BadQuery(`container ${container} is not valid for pod ${pod}`);
  const flag = (key: string): boolean => {
    const value = query.get(key) ?? '';
    if (!['', 'true', '1', 'false', '0'].includes(value)) throw new BadQuery(`${key}: ${JSON.stringify(value)} is neither true nor false`);
    return ['true', '1'].includes(value);
  };
  const follows = flag('follow') && !flag('previous') && !logs.isOver(namespace, pod, container);
  const there = logs.linesOf(namespace, pod, container, flag('previous'));
  if (!there) throw new BadQuery(`previous terminated container "${container}" in pod "${pod}" not found`);
  const since = sinceOf(query) ?? -Infinity;
  const tail = query.get('tailLines');
  let left = query.get('limitBytes') ? whole('limitBytes', query.get('limitBytes') ?? '', 1) : Infinity;
  const recent = there.filter(({ time }) => Date.parse(time) >= since);
  const write = ({ time, text }: Line): void => {
    const bytes = new TextEncoder().encode(`${flag('timestamps') ? `${time} ` : ''}${text}\n`).slice(0, left);
    left -= bytes.length;
    if (bytes.length > 0) response.write(bytes);
  };
  response.writeHead(200, { 'Content-Type': 'text/plain' });
  for (const line of tail ? recent.slice(recent.length - Math.min(recent.length, whole('tailLines', tail))) : recent) write(line);
  if (!follows || left <= 0) {
    response.end();
    return;
  }
  goesOn(logs, response, (entry) => {
    const { namespace: of, pod: name, container: by } = entry.data as Line;
    if (of !== namespace || name !== pod || by !== container) return true;
    if (entry.type === 'line') write(entry.data as Line);
    return entry.type !== 'ended' && left > 0;
  });
}

/** What a stream would tell, as lines of text; those of several containers have their names in front. */
export function answerText(logs: MockLogs, { first, matches, ends }: ToldWatch & { readonly matches: (entry: Entry) => boolean; readonly first: () => readonly Entry[] }, several: boolean, response: MockResponse): void {
  const write = ({ type, data }: Pick<Entry, 'type' | 'data'>): void => {
    const { pod, container, text } = data as Line;
    if (type === 'line') response.write(`${several ? `${pod}/${container} ` : ''}${text}\n`);
  };
  const there = first();
  response.writeHead(200, { 'Content-Type': 'text/plain; charset=utf-8' });
  there.forEach(write);
  if (ends) {
    response.end();
    return;
  }
  goesOn(logs, response, (entry) => {
    if (matches(entry)) write(entry);
    return true;
  });
}

/** Tells what comes, as long as `take` wants more. */
function goesOn(logs: MockLogs, response: MockResponse, take: (entry: Entry) => boolean): void {
  const watcher = (entry: Entry): void => {
    if (take(entry)) return;
    logs.watchers.delete(watcher);
    response.end();
  };
  logs.watchers.add(watcher);
  response.on('close', () => logs.watchers.delete(watcher));
}

// Where what is followed of a log joins what the gateway reads of it by places.

import type { LogEntry } from '@kubecast/sdk';

/** So many lines of each container a stream begins with, unless it is told otherwise. */
export const first = 1_000;

/** Whether there may be lines of before: it began with as many as it may, or behind another run. */
export const mayHaveMore = (tail: readonly LogEntry[]): boolean => tail.length >= first || tail.some((entry) => entry.type === 'started' && entry.restart > 0);

/** A time, so that texts are ordered as what they mean: nodes write nanoseconds, and in any zone. */
const instantOf = (time: string): string => {
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  const seconds = Date.parse(time.replace(/\.\d+/, '')) / 1_000;
  return `${String(Number.isNaN(seconds) ? 0 : seconds).padStart(12, '0')}${fraction.padEnd(9, '0')}`;
};

export const laterThan = (a: string, b: string): boolean => instantOf(a) > instantOf(b);
export const sameTime = (a: string, b: string): boolean => a === b || instantOf(a) === instantOf(b);

/**
 * The index of the line that is placed by its time: it is later than all before it, and behind the first line of each container that
 * may have more; before these the tail has lines of some containers only, unless it is known to be `whole`. -1: there is no line.
 */
export function joinIn(tail: readonly LogEntry[], whole = false): number {
  const dropped = tail[0]?.number ?? 0; // of the oldest, which are kept no more
  const sources = new Map<string, { readonly at: number; lines: number }>();
  for (const [at, entry] of tail.entries()) {
    if (entry.type !== 'line') continue;
    const name = `${entry.pod}/${entry.container}`;
    const source = sources.get(name);
    if (source) source.lines++;
    else sources.set(name, { at, lines: 1 });
  }
  const from = whole ? 0 : Math.max(0, ...[...sources.values()].filter(({ lines }) => lines + dropped >= first).map(({ at }) => at));
  let latest: string | undefined;
  for (const [at, entry] of tail.entries()) {
    if (entry.type !== 'line') continue;
    if (at >= from && latest !== undefined && laterThan(entry.time, latest)) return at;
    if (latest === undefined || laterThan(entry.time, latest)) latest = entry.time;
  }
  return tail.findIndex((entry, at) => at >= from && entry.type === 'line');
}

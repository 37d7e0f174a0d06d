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
 * The index of the line that is placed by its time: later than all before it and than none behind it, since a container may be told
 * late, and behind the first line of each container that may have more; before these the tail has lines of some containers only,
 * unless it is known to be `whole`. -1: there is no such line, or not yet.
 */
export function joinIn(tail: readonly LogEntry[], whole = false): number {
  const dropped = tail[0]?.number ?? 0; // of the oldest, which are kept no more
  const sources = new Map<string, { at: number; lines: number; again: boolean; time: string }>();
  /** A line counts as no earlier than the one before it. */
  const times: (string | undefined)[] = [];
  for (const [at, entry] of tail.entries()) {
    const name = `${entry.pod}/${entry.container}`;
    const source = sources.get(name) ?? { at: tail.length, lines: 0, again: false, time: '' };
    sources.set(name, source);
    // A stream begins with the newest run, and there may be one before.
    if (entry.type === 'started' && entry.restart > 0 && source.lines === 0) source.again = true;
    if (entry.type !== 'line') continue;
    if (source.lines++ === 0) source.at = at;
    if (source.time === '' || laterThan(entry.time, source.time)) source.time = entry.time;
    times[at] = source.time;
  }
  const partial = whole ? [] : [...sources.values()].filter(({ lines, again }) => again || lines + dropped >= first);
  const from = Math.max(0, ...partial.map(({ at }) => at));
  /** The earliest behind each. */
  const behind: (string | undefined)[] = [];
  for (let at = tail.length - 1, soonest: string | undefined; at >= 0; at--) {
    behind[at] = soonest;
    const time = times[at];
    if (time !== undefined && (soonest === undefined || laterThan(soonest, time))) soonest = time;
  }
  let latest: string | undefined;
  let only = -1; // the first line, where nothing is before it
  for (const [at, entry] of tail.entries()) {
    const [time, next] = [times[at], behind[at]];
    if (entry.type !== 'line' || time === undefined) continue;
    const placed = at >= from && sameTime(entry.time, time) && (next === undefined || !laterThan(time, next));
    if (placed && latest !== undefined && laterThan(time, latest)) return at;
    if (placed && latest === undefined && partial.length === 0) only = at;
    if (latest === undefined || laterThan(time, latest)) latest = time;
  }
  return only;
}

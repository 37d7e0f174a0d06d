// The address of a line: whose it is and when it was written, which stays when its place in the log does not.

import type { LogEntry, LogLine } from '@kubecast/sdk';
import { laterThan, sameTime } from './join.ts';

export interface Address {
  readonly pod: string;
  readonly container: string;
  readonly time: string;
  /** How many lines of this time the container wrote before it. */
  readonly before: number;
}

export function parseAddress(text: string): Address | undefined {
  const [pod, container, time, before = '0'] = text.split('/');
  return pod && container && time && !Number.isNaN(Date.parse(time)) && /^\d{1,6}$/.test(before) ? { pod, container, time, before: Number(before) } : undefined;
}

export const isAt = (entry: LogEntry | undefined, { pod, container, time }: Pick<Address, 'pod' | 'container' | 'time'>): entry is LogLine =>
  entry?.type === 'line' && entry.pod === pod && entry.container === container && sameTime(entry.time, time);

/** So many entries before a line are looked through for others of its time. */
const most = 10_000;

/** That a run began is told before its last lines, too, so it does not say what is before a line. */
const isBeside = (entry: LogEntry | undefined, { pod, container }: Pick<Address, 'pod' | 'container'>): boolean => entry?.type === 'line' && entry.pod === pod && entry.container === container;

/** Whether what a container wrote is later than the line of an address, so that this one is not behind it. */
export const isBehind = (entry: LogEntry, address: Address): boolean => entry.type === 'line' && isBeside(entry, address) && laterThan(entry.time, address.time);

/**
 * The address of the line at an index; undefined: nothing of a line is there, or it is not known how many lines of its time are before the first entry.
 * Whether these are `all` from the first one on, says who has them.
 */
export function addressAt(entries: readonly LogEntry[], index: number, all: boolean): string | undefined {
  const line = entries[index];
  if (line?.type !== 'line') return undefined;
  let before = 0;
  let known = all && index < most;
  // Lines of one time stand together, as far as other containers let them.
  for (let n = index - 1; n >= 0 && index - n < most; n--) {
    const entry = entries[n];
    if (isAt(entry, line)) before++;
    else if (isBeside(entry, line)) {
      known = true;
      break;
    }
  }
  // One that is alone in its time is found by it, whatever is before.
  if (!known && (before > 0 || isAt(entries.slice(index + 1, index + 100).find((entry) => isBeside(entry, line)), line))) return undefined;
  return `${line.pod}/${line.container}/${line.time}${before > 0 ? `/${before}` : ''}`;
}

/** The line that has an address; undefined: it is not among these, or it is not known which of its time it is. */
export function lineAt(entries: readonly LogEntry[], address: Address, all: boolean): LogEntry | undefined {
  const at = entries.findIndex((entry) => isAt(entry, address));
  const first = entries.findIndex((entry) => isBeside(entry, address));
  const alone = address.before === 0 && entries.filter((entry) => isAt(entry, address)).length === 1;
  if (at === first && !all && !alone) return undefined;
  let before = address.before;
  return entries.find((entry) => isAt(entry, address) && before-- === 0);
}

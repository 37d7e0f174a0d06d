// The address of a line: whose it is and when it was written, which stays when its place in the log does not.

import type { LogEntry, LogLine } from '@kubecast/sdk';
import { sameTime } from './join.ts';

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

const isOf = (entry: LogEntry | undefined, { pod, container, time }: Pick<Address, 'pod' | 'container' | 'time'>): entry is LogLine =>
  entry?.type === 'line' && entry.pod === pod && entry.container === container && sameTime(entry.time, time);

/** The address of the line at an index; undefined: nothing of a line is there. */
export function addressAt(entries: readonly LogEntry[], index: number): string | undefined {
  const line = entries[index];
  if (line?.type !== 'line') return undefined;
  let before = 0;
  // Lines of one time stand together, as far as other containers let them.
  for (let n = index - 1; n >= 0 && index - n < 10_000; n--) {
    const entry = entries[n];
    if (isOf(entry, line)) before++;
    else if (entry?.pod === line.pod && entry.container === line.container) break;
  }
  return `${line.pod}/${line.container}/${line.time}${before > 0 ? `/${before}` : ''}`;
}

/** The line that has an address; undefined: it is not among these. */
export function lineAt(entries: readonly LogEntry[], address: Address): LogEntry | undefined {
  let before = address.before;
  return entries.find((entry) => isOf(entry, address) && before-- === 0);
}

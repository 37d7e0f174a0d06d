// Which entries of a log are shown, and how they read.

import type { LogEntry, LogGap, LogRun } from '@kubecast/sdk';
import { t } from './texts.ts';

const sourceOf = ({ pod, container }: LogEntry): string => `${pod}/${container}`;

/** Whose entries there are, in the order in which they were first told. */
export function sourcesOf(entries: readonly LogEntry[]): string[] {
  return [...new Set(entries.map(sourceOf))];
}

/** What all of their pods' names begin with, up to a hyphen: it tells none from another. */
export function commonName(entries: readonly LogEntry[]): string {
  const [first = '', ...others] = new Set(entries.map(({ pod }) => pod));
  if (others.length === 0) return '';
  let length = first.length;
  for (const other of others) while (!other.startsWith(first.slice(0, length))) length--;
  return first.slice(0, first.lastIndexOf('-', length - 1) + 1);
}

/** How many have come since those at which the reader stays; the first of them may be kept no more. */
export function newerThan(held: readonly LogEntry[], now: readonly LogEntry[]): number {
  const last = held.at(-1)?.number ?? -1;
  return Math.max(0, (now.at(-1)?.number ?? last) - last);
}

/** Those of one container, as {@link sourcesOf} names it, or of all. */
export const entriesOf = (entries: readonly LogEntry[], source: string): readonly LogEntry[] => (source === '' ? entries : entries.filter((entry) => sourceOf(entry) === source));

/** What is told beside the lines. */
export function words(entry: LogRun | LogGap): string {
  switch (entry.type) {
    case 'started':
      return entry.restart === 0 ? `— ${t.started} —` : `— ${t.startedAgain(entry.restart)} —`;
    case 'ended':
      return `— ${t.ended(entry.exitCode, entry.reason ?? '')} —`;
    case 'reset':
      // A node that says something can be reached.
      return `— ${entry.message ? t.said(entry.message) : (t.gaps[entry.reason] ?? t.gap(entry.reason))} —`;
  }
}

/** What became of the last run of a container that is told: undefined as long as it has not ended. */
export function becameOf(entries: readonly LogEntry[], source: string): { readonly words: string; readonly failed: boolean } | undefined {
  for (let n = entries.length - 1; n >= 0; n--) {
    const entry = entries[n];
    if (!entry || sourceOf(entry) !== source || entry.type === 'reset') continue;
    return entry.type === 'ended' ? { words: t.ended(entry.exitCode, entry.reason), failed: Boolean(entry.exitCode) } : undefined;
  }
  return undefined;
}

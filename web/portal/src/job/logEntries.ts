// Which entries of a log are shown, and how they read.

import type { LogEntry, LogGap, LogRun } from '@kubecast/sdk';
import { t } from './texts.ts';

const sourceOf = ({ pod, container }: LogEntry): string => `${pod}/${container}`;

/** Whose entries there are, in the order in which they were first told. */
export function sourcesOf(entries: readonly LogEntry[]): string[] {
  return [...new Set(entries.map(sourceOf))];
}

/** How many have come since those at which the reader stays; the first of them may be kept no more. */
export function newerThan(held: readonly LogEntry[], now: readonly LogEntry[]): number {
  const last = held.at(-1)?.number ?? -1;
  return Math.max(0, (now.at(-1)?.number ?? last) - last);
}

/** The lines that contain a text in whatever case, of one container or of all. Without a text also what is told beside the lines. */
export function entriesWith(entries: readonly LogEntry[], search: string, source: string): readonly LogEntry[] {
  if (search === '' && source === '') return entries;
  const wanted = search.toLowerCase();
  return entries.filter(
    (entry) => (source === '' || sourceOf(entry) === source) && (search === '' || (entry.type === 'line' && entry.text.toLowerCase().includes(wanted))),
  );
}

/** A text in parts, of which every second is what was searched for. */
export function parts(text: string, search: string): string[] {
  if (search === '') return [text];
  const found: string[] = [];
  const wanted = search.toLowerCase();
  const lower = text.toLowerCase();
  if (lower.length !== text.length) return [text]; // in some scripts a letter changes its length with its case
  let from = 0;
  for (let at = lower.indexOf(wanted); at !== -1; at = lower.indexOf(wanted, from)) {
    found.push(text.slice(from, at), text.slice(at, at + wanted.length));
    from = at + wanted.length;
  }
  return [...found, text.slice(from)];
}

/** What is told beside the lines. */
export function words(entry: LogRun | LogGap): string {
  switch (entry.type) {
    case 'started':
      return entry.restart === 0 ? `— ${t.log.started} —` : `— ${t.log.startedAgain(entry.restart)} —`;
    case 'ended':
      return `— ${t.log.ended(entry.exitCode, entry.reason ?? '')} —`;
    case 'reset':
      // A node that says something can be reached.
      return `— ${entry.message ? t.log.gap(entry.message) : (t.log.gaps[entry.reason] ?? t.log.gap(entry.reason))} —`;
  }
}

// Finding a text in what is loaded of a log.

import type { LogEntry } from '@kubecast/sdk';
import { wordsOf } from './terminal.ts';

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

/** What cannot be in a search as it is written: then it is looked for in what is shown. */
const controlled = /[\x00-\x08\x0b-\x1f]/;

/** Whether a line has the text, in whatever case. */
export function has(entry: LogEntry, wanted: string): boolean {
  return entry.type === 'line' && (controlled.test(entry.text) ? wordsOf(entry.text) : entry.text).toLowerCase().includes(wanted);
}

/** The numbers of the entries that have it; none without a text. */
export function matchesOf(entries: readonly LogEntry[], search: string): number[] {
  if (search === '') return [];
  const wanted = search.toLowerCase();
  return entries.filter((entry) => has(entry, wanted)).map(({ number }) => number);
}

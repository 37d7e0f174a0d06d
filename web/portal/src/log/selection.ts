// What is selected in a log, of which the document has only what is in sight: it is copied as whole lines with their ends.

import type { LogEntry } from '@kubecast/sdk';
import { words } from './entries.ts';
import { indexOf, type Rows } from './rows.ts';
import { wordsOf } from './terminal.ts';

/** The ids of the first and the last row of a selection; undefined: nothing is selected in the log. */
export function selectedIn(log: Element | null): readonly [number, number] | undefined {
  const selection = log?.ownerDocument.getSelection();
  if (!log || !selection || selection.isCollapsed || selection.rangeCount === 0) return undefined;
  const range = selection.getRangeAt(0);
  if (!range.intersectsNode(log)) return undefined;
  const rows = [...log.querySelectorAll('[data-row]')].filter((row) => range.intersectsNode(row));
  const begun = rows.filter((row) => !endsBefore(range, row));
  const ids = (begun.length > 0 ? begun : rows).map((row) => Number(row.getAttribute('data-row')));
  return ids.length > 0 ? [Math.min(...ids), Math.max(...ids)] : undefined;
}

/** A triple click selects a line up to the beginning of the next one, of which nothing is selected then. */
function endsBefore(range: Range, row: Element): boolean {
  const text = row.querySelector('.log-text') ?? row;
  if (range.comparePoint(text, 0) !== 0) return range.comparePoint(text, 0) > 0;
  const selected = range.cloneRange();
  selected.setStart(text, 0);
  return selected.toString() === '';
}

const textOf = (entry: LogEntry): string => (entry.type === 'line' ? wordsOf(entry.text) : words(entry));

/** The lines from one row to another, each with its end. What is not loaded is said so. */
export function copied(rows: Rows, [first, last]: readonly [number, number], notLoaded: (count: number) => string): string {
  const lines: string[] = [];
  let missing = 0;
  const end = indexOf(rows, last);
  for (let index = indexOf(rows, first); index <= end && index < rows.count; index++) {
    const { entry, gap } = rows.at(index) ?? {};
    if (!entry) {
      missing += gap?.missing ?? 0;
      continue;
    }
    if (missing > 0) lines.push(notLoaded(missing));
    missing = 0;
    lines.push(textOf(entry));
  }
  if (missing > 0) lines.push(notLoaded(missing));
  return lines.map((line) => `${line}\n`).join('');
}

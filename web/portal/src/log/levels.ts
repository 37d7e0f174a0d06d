// How bad a line says that it is, in the forms that the usual loggers write.

import type { LogEntry } from '@kubecast/sdk';
import { wordsOf } from './terminal.ts';

export const levels = ['error', 'warning', 'info', 'debug'] as const;
export type Level = (typeof levels)[number];

/** A level stands at the beginning of a line. */
const looked = 200;
const letters: Readonly<Record<string, Level>> = { F: 'error', E: 'error', W: 'warning', I: 'info', D: 'debug' };
const named = /"?\b(?:level|lvl|severity|levelname)"?\s*[=:]\s*"?(trace|debug|info|notice|warn|error|err\b|crit|fatal|panic|emerg|alert)/i;
const capital = /(?<![\w-])(TRACE|DEBUG|INFO|NOTICE|WARN|ERROR|ERR(?!\w)|CRIT|FATAL|PANIC|SEVERE)(?:ING|ICAL)?(?!\w)/;
const thrown = /^(?:Traceback \(most recent call last\)|(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception)\b|panic: )/;

export function levelOf(text: string): Level | undefined {
  const start = wordsOf(text.length > 4 * looked ? text.slice(0, 4 * looked) : text).slice(0, looked);
  const klog = /^([FEWID])\d{4} \d\d:\d\d:\d\d/.exec(start);
  if (klog) return letters[klog[1] ?? ''];
  const word = (named.exec(start) ?? capital.exec(start))?.[1]?.toLowerCase();
  if (word === undefined) return thrown.test(start) ? 'error' : undefined;
  if (word.startsWith('warn')) return 'warning';
  if (word === 'info' || word === 'notice') return 'info';
  return word === 'debug' || word === 'trace' ? 'debug' : 'error';
}

const known = new WeakMap<LogEntry, Level | ''>();

/** The same, looked at once for each line. */
export function levelOfEntry(entry: LogEntry): Level | undefined {
  let level = known.get(entry);
  if (level === undefined) known.set(entry, (level = entry.type === 'line' ? (levelOf(entry.text) ?? '') : ''));
  return level || undefined;
}

/** The lines that are at least as bad, with those that go on behind one of them, such as a stack; and what is told beside the lines. */
export function atLeast(entries: readonly LogEntry[], least: Level | ''): readonly LogEntry[] {
  if (least === '') return entries;
  const passes = new Set<Level>(levels.slice(0, levels.indexOf(least) + 1));
  const last = new Map<string, boolean>();
  return entries.filter((entry) => {
    if (entry.type !== 'line') return true;
    const of = `${entry.pod}/${entry.container}`;
    const level = levelOfEntry(entry);
    const passed = level ? passes.has(level) : (last.get(of) ?? false);
    last.set(of, passed);
    return passed;
  });
}

import type { LogEntry, LogLine } from '@kubecast/sdk';
import { useMemo, useState, type ReactNode } from 'react';
import { clock } from '../texts/clock.ts';
import { formatDate, formatNumber } from '../texts/format.ts';
import { formatAgo } from '../texts/when.ts';
import { words } from './entries.ts';
import { parts } from './find.ts';
import { levelOfEntry } from './levels.ts';
import { mostShown, shownOf, type Span } from './terminal.ts';
import { t } from './texts.ts';

export interface LineProps {
  readonly entry: LogEntry;
  readonly search: string;
  /** Whose it is, where there are several: without this, with which all of their names begin. Undefined: there is one. */
  readonly named: string | undefined;
  readonly times: boolean;
  /** Where the line's own address leads; undefined: it has none. */
  readonly href: string | undefined;
  readonly onLink: (number: number) => void;
}

/** Made anew only if something of it has changed: there are many, and all are shown again with each that comes. */
export function Line({ entry, search, named, times, href, onLink }: LineProps): ReactNode {
  return useMemo(
    () => (
      <>
        {entry.type === 'line' && times && <Time time={entry.time} href={href} onLink={() => onLink(entry.number)} />}
        {named !== undefined && <From entry={entry} without={named} />}
        {entry.type === 'line' ? <Text line={entry} search={search} /> : <span className="log-words">{words(entry)}</span>}
      </>
    ),
    // eslint-disable-next-line react-hooks/exhaustive-deps -- whichever it is, it leads to the line
    [entry, search, named, times, href],
  );
}

function From({ entry: { pod, container }, without }: { readonly entry: LogEntry; readonly without: string }): ReactNode {
  const whole = `${pod}/${container}`;
  const cut = without !== '' && whole.startsWith(without);
  return (
    <span className="log-from" title={cut ? whole : undefined} translate="no">
      {cut ? `…${whole.slice(without.length)}` : whole}
    </span>
  );
}

/** Its class, which has its level. */
export const lookOf = (entry: LogEntry): string => `log-${entry.type}${entry.type === 'line' ? ` log-level-${levelOfEntry(entry) ?? 'none'}` : ''}${entry.type === 'ended' && entry.exitCode ? ' log-failed' : ''}`;

const ofDay = new Intl.DateTimeFormat('sv-SE', { hour: '2-digit', minute: '2-digit', second: '2-digit', ...(clock === 'utc' && { timeZone: 'UTC' }) });

function Time({ time, href, onLink }: { time: string; href: string | undefined; onLink: () => void }): ReactNode {
  const at = Date.parse(time); // in whatever zone the node lives
  if (Number.isNaN(at)) return null;
  const text = clock === 'relative' ? formatAgo(at) : ofDay.format(at);
  return (
    <time dateTime={time} title={formatDate(at)}>
      {href === undefined ? text : <Link href={href} text={text} onLink={onLink} />}{' '}
    </time>
  );
}

/** Not among what the keyboard goes through: there are as many as lines. */
function Link({ href, text, onLink }: { href: string; text: string; onLink: () => void }): ReactNode {
  const onClick = (event: { button: number; ctrlKey: boolean; metaKey: boolean; shiftKey: boolean; preventDefault: () => void }): void => {
    if (event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey) return; // another tab
    event.preventDefault();
    onLink();
  };
  return (
    <a href={href} tabIndex={-1} onClick={onClick}>
      {text}
    </a>
  );
}

function Text({ line, search }: { line: LogLine; search: string }): ReactNode {
  const [whole, setWhole] = useState(false);
  const { spans, more } = shownOf(line.text, whole ? Infinity : mostShown);
  return (
    <span className="log-text" translate="no" dir="ltr">
      {spans.map((span, n) => (
        <Piece key={n} span={span} search={search} />
      ))}
      {more > 0 && (
        <button type="button" className="log-more" onClick={() => setWhole(true)}>
          … {t.more(more)}
        </button>
      )}
      {line.cut && more === 0 && <span className="none"> … {t.cut}</span>}
    </span>
  );
}

function Piece({ span: { text, look, color, background }, search }: { span: Span; search: string }): ReactNode {
  const said = parts(text, search).map((part, n) => (n % 2 === 1 ? <mark key={n}>{part}</mark> : part));
  if (!look && !color && !background) return said;
  return (
    <span className={`${look}${color ? ' ansi-color' : ''}`} style={{ ...(color && { '--ansi': color }), ...(background && { backgroundColor: background }) }}>
      {said}
    </span>
  );
}

/** For what is left out of a list of lines that is copied. */
export const notLoaded = (count: number): string => `[… ${formatNumber(count)} …]`;

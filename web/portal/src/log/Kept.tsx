// A log that is over, of which the page has all that is kept.

import type { LogEntry } from '@kubecast/sdk';
import { useDeferredValue, useMemo, useState, type ReactNode } from 'react';
import { save } from '../export/save.ts';
import { formatNumber } from '../texts/format.ts';
import { Find } from './Find.tsx';
import { matchesOf } from './find.ts';
import { Lines, type Mark } from './Lines.tsx';
import { useOptions } from './options.ts';
import { rowsOf } from './rows.ts';
import { t } from './texts.ts';
import './log.css';

/** The lines of a text, whose last may have no end. */
const entriesOf = (text: string): readonly LogEntry[] =>
  text.replace(/\n$/, '').split('\n').map((line, number) => ({ type: 'line', number, namespace: '', pod: '', container: '', time: '', text: line, cut: false }));

const never = (): undefined => undefined;

interface KeptLinesProps {
  /** As it was written: a stranger's. */
  readonly text: string;
  /** What it is called. */
  readonly label: string;
  readonly file: string;
}

/** Opens at its end, which is what is asked for of it. */
export function KeptLines({ text, label, file }: KeptLinesProps): ReactNode {
  const [{ wrap }, change] = useOptions();
  const [search, setSearch] = useState('');
  const [at, setAt] = useState<Mark>();
  const sought = useDeferredValue(search);
  const entries = useMemo(() => entriesOf(text), [text]);
  const rows = useMemo(() => rowsOf([{ from: 0, entries }]), [entries]);
  const matches = useMemo(() => matchesOf(entries, sought), [entries, sought]);
  const place = at ? matches.indexOf(at.id) : -1;
  const go = (step: 1 | -1): void => {
    const from = at?.id ?? Infinity;
    const next = step === 1 ? (matches.find((one) => one > from) ?? matches[0]) : (matches.findLast((one) => one < from) ?? matches.at(-1));
    if (next !== undefined) setAt({ id: next });
  };
  return (
    <>
      <div className="log-bar">
        <Find search={search} onSearch={setSearch} any={matches.length > 0} onGo={go} />
        <button type="button" className="button" aria-pressed={wrap} onClick={() => change({ wrap: !wrap })}>
          {t.wrap}
        </button>
        <button type="button" className="button" onClick={() => save(new Blob([text], { type: 'text/plain' }), file)}>
          {t.download}
        </button>
        <span className="log-count" role="status">
          {sought !== '' && (matches.length === 0 ? t.noMatch : t.matchOf(place < 0 ? '–' : formatNumber(place + 1), formatNumber(matches.length)))}
        </span>
      </div>
      <Lines rows={rows} search={sought} named={undefined} wrap={wrap} times={false} goTo={at} label={label} busy={false} onTop={never} onGap={never} hrefOf={never} onLink={never} />
    </>
  );
}

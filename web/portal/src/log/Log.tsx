// The log of a pod, or of what pods belong to, as it is written.

import { isFinal, type KubeObject, type LogEntry, logs, type Resource, type Status } from '@kubecast/sdk';
import { useFollow } from '@kubecast/sdk/react';
import { useDeferredValue, useMemo, useState, type ReactNode } from 'react';
import { Folded } from '../filters/Folded.tsx';
import type { Unwritten } from '../pods/unwritten.ts';
import { WhyUnwritten } from '../pods/WhyUnwritten.tsx';
import { Spoken } from '../scheduling/Spoken.tsx';
import { chooseClock, clock, clocks, type Clock } from '../texts/clock.ts';
import { formatView, setView, useView } from '../view/view.ts';
import { addressAt } from './address.ts';
import { Columns } from './Columns.tsx';
import { downloadLog } from './download.ts';
import { commonName, becameOf, entriesOf, newerThan, sourcesOf } from './entries.ts';
import { mayHaveMore } from './join.ts';
import { atLeast, levelOfEntry, levels, type Level } from './levels.ts';
import { Find } from './Find.tsx';
import { Lines, type Mark } from './Lines.tsx';
import { LinkToLine, useLinkedLine } from './LinkToLine.tsx';
import { useMatches } from './matches.ts';
import { useLevel, useOptions } from './options.ts';
import { askAbout, saidBy } from './questions.ts';
import { indexOf, rowsOf } from './rows.ts';
import { entriesIn, isGap } from './stretches.ts';
import { t } from './texts.ts';
import { useWhole } from './whole.ts';
import './log.css';

export interface LogProps {
  /** What has the name: a pod, or something to which pods belong. */
  readonly of: Resource<KubeObject>;
  readonly namespace: string;
  readonly name: string;
  readonly token: string | undefined;
  readonly choice?: ReactNode;
  /** What the page knows of why nothing is written, as long as nothing is. */
  readonly unwritten?: Unwritten | undefined;
}

export function Log({ of, namespace, name, token, choice, unwritten }: LogProps): ReactNode {
  const view = useView();
  const { data, status, error, retry } = useFollow(logs(of, { namespace, name }));
  const [options, change] = useOptions();
  const [level, setLevel] = useLevel(view);
  const [search, setSearch] = useState('');
  const [chosen, setOnly] = useState('');
  const [held, setHeld] = useState<readonly LogEntry[]>();
  const [saving, setSaving] = useState('');
  const [at, setAt] = useState<Mark>();
  const sought = useDeferredValue(search);
  const tail = held ?? data;
  const ask = askAbout(of, namespace, name, view.cluster, token);
  const whole = useWhole(ask, tail);
  const { pieces, left } = whole;
  const all = useMemo(() => entriesIn(pieces), [pieces]);
  const loaded = useMemo(() => rowsOf([{ from: 0, entries: all }]), [all]);
  const sources = useMemo(() => sourcesOf(all), [all]);
  const common = useMemo(() => commonName(all), [all]);
  const side = view.log === 'side' && sources.length > 1;
  const only = side ? '' : chosen;
  const shows = (entries: readonly LogEntry[]): readonly LogEntry[] => atLeast(entriesOf(entries, only), level);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- what it shows is of these
  const rows = useMemo(() => rowsOf(pieces, shows), [pieces, only, level]);
  // eslint-disable-next-line react-hooks/exhaustive-deps -- what it shows is of these
  const shown = useMemo(() => entriesIn(pieces.map((piece) => (isGap(piece) ? piece : { from: piece.from, entries: shows(piece.entries) }))), [pieces, only, level]);
  const newer = held ? newerThan(held, data) : 0;
  const more = left === undefined ? mayHaveMore(tail) : left > 0;
  const matches = useMatches({ ask, whole, search: sought, beyond: mayHaveMore(tail) && (left !== 0 || pieces.some(isGap)), shown, shows, at, setAt });
  /** Whoever comes by a link wants to see its line. */
  const show = (mark: Mark): void => {
    setOnly('');
    if (level !== '') setLevel('');
    setAt(mark);
  };
  const linked = useLinkedLine({ line: view.line, ready: status === 'live', entries: all, all: !more, whole, setAt: show });

  const addressOf = (id: number): string | undefined => {
    const index = indexOf(loaded, id);
    return loaded.at(index)?.id === id ? addressAt(all, index, !more) : undefined;
  };
  const hrefOf = (id: number): string | undefined => {
    const line = addressOf(id);
    return line && formatView({ ...view, line });
  };
  const onLink = (id: number): void => {
    const line = addressOf(id);
    if (!line) return;
    linked.isAt(line);
    setView({ line });
    setAt({ id, still: true });
  };
  const stay = useMemo(() => (level === '' ? 0 : shown.filter((entry) => entry.type === 'line' && !levelOfEntry(entry)).length), [shown, level]);
  const hides = [shown.length < all.length && t.linesOf(shown.length, all.length), stay > 0 && t.withoutLevel(stay)].filter(Boolean).join(' · ');
  const count = saving || linked.said || matches.said || hides;
  const save = (): void => {
    setSaving(t.downloading);
    downloadLog(of, namespace, name, view.cluster, token).then(
      () => setSaving(''),
      (failure: unknown) => setSaving(saidBy(failure)),
    );
  };
  const lines = {
    search: sought,
    wrap: options.wrap,
    times: options.times,
    goTo: at,
    busy: whole.busy,
    // What was refused is asked for again by the button alone, and not with each turn of a wheel.
    onTop: () => more && !whole.trouble && whole.earlier(),
    onGap: whole.fill,
    hrefOf,
    onLink,
  };
  return (
    <>
      <div className="log-bar">
        {choice}
        <Find search={search} onSearch={setSearch} any={matches.any} onGo={matches.go} />
        {sources.length > 1 && !side && (
          <select className="field" aria-label={t.container} value={only} onChange={(event) => setOnly(event.target.value)}>
            <option value="">{t.allContainers(sources.length)}</option>
            {sources.map((source) => {
              const became = becameOf(all, source);
              return (
                <option key={source} value={source} translate="no">{became ? t.sourceBecame(source, became.words) : source}</option>
              );
            })}
          </select>
        )}
        <Folded label={t.options} set={Number(level !== '')}>
          {sources.length > 1 && (
            <button type="button" className="button" aria-pressed={side} onClick={() => setView({ log: side ? '' : 'side' })}>
              {t.side}
            </button>
          )}
          <select className="field" aria-label={t.level} value={level} onChange={(event) => setLevel(event.target.value as Level | '')}>
            {(['', ...levels] as const).map((one) => (
              <option key={one} value={one}>{t.levels[one]}</option>
            ))}
          </select>
          <button type="button" className="button" aria-pressed={options.wrap} onClick={() => change({ wrap: !options.wrap })}>
            {t.wrap}
          </button>
          <button type="button" className="button" aria-pressed={options.times} onClick={() => change({ times: !options.times })}>
            {t.times}
          </button>
          {options.times && (
            <select className="field" aria-label={t.clock} value={clock} onChange={(event) => chooseClock(event.target.value as Clock)}>
              {clocks.map((one) => (
                <option key={one} value={one}>{t.clocks[one]}</option>
              ))}
            </select>
          )}
          <button type="button" className="button" onClick={save} disabled={saving === t.downloading}>
            {t.download}
          </button>
        </Folded>
        <button type="button" className="button" aria-pressed={held !== undefined} onClick={() => setHeld(held ? undefined : data)}>
          {held ? (newer > 0 ? t.goOnNew(newer) : t.goOn) : t.pause}
        </button>
        {at && <LinkToLine onLink={() => onLink(at.id)} />}
        <span className="log-count">{count}</span>
        <Spoken text={count} asked={`${saving} ${only} ${sought} ${level} ${view.line}`} />
      </div>
      {more && tail.some(({ type }) => type === 'line') && (
        <button type="button" className="log-earlier" aria-disabled={whole.busy} onClick={whole.earlier}>
          {whole.busy ? t.loadingLines : whole.trouble || (left === undefined ? t.earlier : t.earlierLines(left))}
        </button>
      )}
      {rows.count > 0 && all.every(({ type }) => type === 'started') && <Nothing status={status} message={error?.message} sought={false} unwritten={unwritten} onRetry={retry} />}
      {rows.count > 0 && side && <Columns sources={sources} pieces={pieces} all={all} level={level} {...lines} />}
      {rows.count > 0 && !side && <Lines rows={rows} named={sources.length > 1 && only === '' ? common : undefined} label={t.log} {...lines} />}
      {rows.count === 0 && <Nothing status={status} message={error?.message} sought={all.length > 0} unwritten={unwritten} onRetry={retry} />}
    </>
  );
}

interface NothingProps {
  readonly status: Status;
  readonly message: string | undefined;
  /** There are lines, but none that is looked for. */
  readonly sought: boolean;
  readonly unwritten: Unwritten | undefined;
  readonly onRetry: () => void;
}

function Nothing({ status, message, sought, unwritten, onRetry }: NothingProps): ReactNode {
  if (isFinal({ status })) {
    return (
      <div className="job-none">
        <p>
          {t.denied} <span translate="no">{message}</span>
        </p>
        <button type="button" className="button" onClick={onRetry}>
          {t.tryAgain}
        </button>
      </div>
    );
  }
  if (!sought && status === 'live' && unwritten) {
    return (
      <div className="job-none">
        <WhyUnwritten of={unwritten} />
      </div>
    );
  }
  return <p className="job-none">{sought ? t.noneSoBad : status === 'live' ? t.nothing : t.loading}</p>;
}

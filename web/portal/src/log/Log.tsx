// The log of a pod, or of what pods belong to, as it is written.

import { logs, type KubeObject, type LogEntry, type Resource, type WatchStatus } from '@kubecast/sdk';
import { useFollow } from '@kubecast/sdk/react';
import { useDeferredValue, useMemo, useState, type ReactNode } from 'react';
import { Spoken } from '../scheduling/Spoken.tsx';
import { chooseClock, clock, clocks, type Clock } from '../texts/clock.ts';
import { formatNumber } from '../texts/format.ts';
import { downloadLog } from './download.ts';
import { useEarlier } from './earlier.ts';
import { entriesOf, newerThan, sourcesOf } from './entries.ts';
import { matchesOf } from './find.ts';
import { atLeast, levels, type Level } from './levels.ts';
import { Lines } from './Lines.tsx';
import { useOptions } from './options.ts';
import { rowsOf } from './rows.ts';
import { t } from './texts.ts';
import './log.css';

export interface LogProps {
  /** What has the name: a pod, or something to which pods belong. */
  readonly of: Resource<KubeObject>;
  readonly namespace: string;
  readonly name: string;
  readonly token: string | undefined;
  readonly choice?: ReactNode;
}

export function Log({ of, namespace, name, token, choice }: LogProps): ReactNode {
  const { data, status, error, retry } = useFollow(logs(of, { namespace, name }));
  const [options, change] = useOptions();
  const [search, setSearch] = useState('');
  const [only, setOnly] = useState('');
  const [held, setHeld] = useState<readonly LogEntry[]>();
  const [saving, setSaving] = useState('');
  const [at, setAt] = useState<{ readonly id: number }>();
  const sought = useDeferredValue(search);
  const tail = held ?? data;
  const sources = useMemo(() => sourcesOf(tail), [tail]);
  const earlier = useEarlier(of, namespace, name, sources[0]?.split('/')[1], token, tail);
  const { left } = earlier;
  // eslint-disable-next-line react-hooks/exhaustive-deps -- they are as many as these
  const all = useMemo(() => earlier.all, [tail, earlier.all.length, earlier.all[0]]);
  const shown = useMemo(() => atLeast(entriesOf(all, only), options.level), [all, only, options.level]);
  const rows = useMemo(() => rowsOf(shown), [shown]);
  const matches = useMemo(() => matchesOf(shown, sought), [shown, sought]);
  const newer = held ? newerThan(held, data) : 0;

  const place = at ? matches.indexOf(at.id) : -1;
  const found = sought === '' ? '' : matches.length === 0 ? t.noMatch : t.matchOf(place < 0 ? '–' : formatNumber(place + 1), formatNumber(matches.length));
  const count = saving || found || (shown.length < all.length ? t.linesOf(shown.length, all.length) : '');
  /** From where the reader is, or from the newest. */
  const go = (step: 1 | -1): void => {
    const before = at ? matches.filter((one) => one < at.id).length : matches.length;
    const next = step === 1 ? before + (place >= 0 ? 1 : 0) : before - 1;
    const id = matches[(next + matches.length) % Math.max(1, matches.length)];
    if (id !== undefined) setAt({ id });
  };
  const save = (): void => {
    setSaving(t.downloading);
    downloadLog(of, namespace, name, token).then(
      () => setSaving(''),
      (failure: unknown) => setSaving(failure instanceof Error ? failure.message : String(failure)),
    );
  };
  return (
    <>
      <div className="log-bar">
        {choice}
        <span className="log-find">
          <input
            type="search"
            className="field log-search"
            aria-label={t.search}
            placeholder={t.search}
            value={search}
            spellCheck={false}
            onChange={(event) => setSearch(event.target.value)}
            onKeyDown={(event) => event.key === 'Enter' && go(event.shiftKey ? 1 : -1)}
          />
          <button type="button" className="button" aria-label={t.previous} title={t.previous} disabled={matches.length === 0} onClick={() => go(-1)}>
            ↑
          </button>
          <button type="button" className="button" aria-label={t.next} title={t.next} disabled={matches.length === 0} onClick={() => go(1)}>
            ↓
          </button>
        </span>
        {sources.length > 1 && (
          <select className="field" aria-label={t.container} value={only} onChange={(event) => setOnly(event.target.value)}>
            <option value="">{t.allContainers(sources.length)}</option>
            {sources.map((source) => (
              <option key={source} translate="no">{source}</option>
            ))}
          </select>
        )}
        <select className="field" aria-label={t.level} value={options.level} onChange={(event) => change({ level: event.target.value as Level | '' })}>
          {(['', ...levels] as const).map((level) => (
            <option key={level} value={level}>{t.levels[level]}</option>
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
        <button type="button" className="button" aria-pressed={held !== undefined} onClick={() => setHeld(held ? undefined : data)}>
          {held ? (newer > 0 ? t.goOnNew(newer) : t.goOn) : t.pause}
        </button>
        <button type="button" className="button" onClick={save} disabled={saving === t.downloading}>
          {t.download}
        </button>
        <span className="log-count">{count}</span>
        <Spoken text={count} asked={`${saving} ${only} ${sought} ${options.level}`} />
      </div>
      {sources.length === 1 && left !== 0 && (left !== undefined || mayHaveMore(tail)) && (
        <button type="button" className="log-earlier" onClick={earlier.load}>
          {earlier.trouble || (left === undefined ? t.earlier : t.earlierLines(left))}
        </button>
      )}
      {shown.length > 0 ? (
        <Lines rows={rows} search={sought} named={sources.length > 1 && only === ''} wrap={options.wrap} times={options.times} goTo={at} />
      ) : (
        <Nothing status={status} message={error?.message} sought={all.length > 0} onRetry={retry} />
      )}
    </>
  );
}

/** So many lines a stream begins with, unless it is told otherwise. */
const first = 1_000;
/** Whether there may be lines of before: it began with as many as it may, or behind another run. */
const mayHaveMore = (tail: readonly LogEntry[]): boolean => tail.length >= first || tail.some((entry) => entry.type === 'started' && entry.restart > 0);

interface NothingProps {
  readonly status: WatchStatus;
  readonly message: string | undefined;
  /** There are lines, but none that is looked for. */
  readonly sought: boolean;
  readonly onRetry: () => void;
}

function Nothing({ status, message, sought, onRetry }: NothingProps): ReactNode {
  if (status === 'denied') {
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
  return <p className="job-none">{sought ? t.noneSoBad : status === 'live' ? t.nothing : t.loading}</p>;
}

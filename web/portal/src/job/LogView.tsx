// What a job's pods write, as it is written.

import { logs, type KubeObject, type LogEntry, type LogLine, type Resource, type WatchStatus } from '@kubecast/sdk';
import { useFollow } from '@kubecast/sdk/react';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useDeferredValue, useEffect, useMemo, useRef, useState, type ReactNode } from 'react';
import { Spoken } from '../scheduling/Spoken.tsx';
import type { PodRow } from '../pods/pod.ts';
import { downloadLog } from './download.ts';
import { entriesWith, newerThan, parts, sourcesOf, words } from './logEntries.ts';
import { jobs, pods } from './resources.ts';
import { stateName } from '../state/texts.ts';
import { t } from './texts.ts';

interface LogViewProps {
  readonly namespace: string;
  readonly name: string;
  /** The job's, which are known by now as far as they may be seen. */
  readonly pods: readonly PodRow[];
  /** Of one pod at a time however few there are: what has the name is not what they belong to. */
  readonly byPod?: boolean;
  readonly token: string | undefined;
}

/**
 * The log of all pods of a job, or of one of them where they are many: each container is a log of its own to the gateway, which
 * bounds how many a user may follow.
 */
export function LogView({ namespace, name, pods: all, byPod = false, token }: LogViewProps): ReactNode {
  const [chosen, setChosen] = useState('');
  const many = byPod || all.reduce((sum, one) => sum + one.logs, 0) > mostAtOnce;
  if (!many) return <Log key={name} of={jobs} namespace={namespace} name={name} token={token} />;
  const pod = all.find((one) => one.name === chosen) ?? all.find(({ state }) => state === 'Failed') ?? all.find(({ state }) => state === 'Running') ?? all[0];
  if (!pod) return null;
  // Whatever becomes of the pods: who reads a log is not to be taken to another.
  if (pod.name !== chosen) setChosen(pod.name);
  const choice = (
    <select className="field" aria-label={t.log.pod} value={pod.name} onChange={(event) => setChosen(event.target.value)}>
      {all.map((one) => (
        <option key={one.uid} value={one.name} translate="no">{t.log.podState(one.name, stateName(one.state))}</option>
      ))}
    </select>
  );
  return <Log key={pod.name} of={pods} namespace={namespace} name={pod.name} token={token} choice={choice} />;
}

/** So many containers of a job are followed at once; the gateway's own bound for all that a user follows is 16 by default. */
const mostAtOnce = 8;
const rowHeight = 18;

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
  const [search, setSearch] = useState('');
  const [only, setOnly] = useState('');
  const [held, setHeld] = useState<readonly LogEntry[]>();
  const [saving, setSaving] = useState('');
  const sought = useDeferredValue(search);
  const all = held ?? data;
  const sources = useMemo(() => sourcesOf(all), [all]);
  const shown = useMemo(() => entriesWith(all, sought, only), [all, sought, only]);
  const count = saving || (sought || only ? t.log.linesOf(shown.length, all.length) : '');
  const newer = held ? newerThan(held, data) : 0;

  const save = (): void => {
    setSaving(t.log.downloading);
    downloadLog(of, namespace, name, token).then(
      () => setSaving(''),
      (failure: unknown) => setSaving(failure instanceof Error ? failure.message : String(failure)),
    );
  };
  return (
    <>
      <div className="log-bar">
        {choice}
        <input
          type="search"
          className="field log-search"
          aria-label={t.log.search}
          placeholder={t.log.search}
          value={search}
          spellCheck={false}
          onChange={(event) => setSearch(event.target.value)}
        />
        {sources.length > 1 && (
          <select className="field" aria-label={t.log.container} value={only} onChange={(event) => setOnly(event.target.value)}>
            <option value="">{t.log.allContainers(sources.length)}</option>
            {sources.map((source) => (
              <option key={source} translate="no">{source}</option>
            ))}
          </select>
        )}
        <button type="button" className="button" aria-pressed={held !== undefined} onClick={() => setHeld(held ? undefined : data)}>
          {held ? (newer > 0 ? t.log.goOnNew(newer) : t.log.goOn) : t.log.pause}
        </button>
        <button type="button" className="button" onClick={save} disabled={saving === t.log.downloading}>
          {t.log.download}
        </button>
        <span className="log-count">{count}</span>
        <Spoken text={count} asked={`${saving} ${only} ${sought}`} />
      </div>
      {shown.length > 0 ? (
        <Lines entries={shown} search={sought} named={sources.length > 1 && only === ''} />
      ) : (
        <Nothing status={status} message={error?.message} sought={all.length > 0} onRetry={retry} />
      )}
    </>
  );
}

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
          {t.log.denied} <span translate="no">{message}</span>
        </p>
        <button type="button" className="button" onClick={onRetry}>
          {t.log.tryAgain}
        </button>
      </div>
    );
  }
  return <p className="job-none">{sought ? t.log.noMatch : status === 'live' ? t.log.nothing : t.loading}</p>;
}

interface LinesProps {
  readonly entries: readonly LogEntry[];
  readonly search: string;
  /** There are several containers, so that each line says whose it is. */
  readonly named: boolean;
}

/** Stays at the end while it is there, and where the reader is otherwise. */
function Lines({ entries, search, named }: LinesProps): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const virtualizer = useVirtualizer({
    count: entries.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => entries[index]?.number ?? index,
    overscan: 20,
  });
  const last = entries.at(-1)?.number;
  useEffect(() => {
    const element = scroller.current;
    if (element && atEnd) element.scrollTop = element.scrollHeight;
  }, [atEnd, last, entries.length]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (element) setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < 2 * rowHeight);
  };
  return (
    <div className="log-frame">
      <div className="log-lines" ref={scroller} onScroll={onScroll} tabIndex={0} role="log" aria-label={t.log.log} aria-live="off">
        <div style={{ height: virtualizer.getTotalSize(), position: 'relative' }}>
          {virtualizer.getVirtualItems().map(({ index, start, key }) => {
            const entry = entries[index];
            if (!entry) return null;
            return (
              <div key={key} className={`log-line log-${entry.type}`} style={{ height: rowHeight, transform: `translateY(${start}px)` }}>
                {named && <span className="log-from" translate="no">{`${entry.pod}/${entry.container}`}</span>}
                {entry.type === 'line' ? <Line entry={entry} search={search} /> : words(entry)}
              </div>
            );
          })}
        </div>
      </div>
      {!atEnd && (
        <button type="button" className="button log-end" onClick={() => setAtEnd(true)}>
          {t.log.toEnd}
        </button>
      )}
    </div>
  );
}

function Line({ entry, search }: { entry: LogLine; search: string }): ReactNode {
  return (
    <>
      <time dateTime={entry.time} title={entry.time}>
        {entry.time.slice(11, 19)}
      </time>{' '}
      <span translate="no">{parts(entry.text, search).map((part, n) => (n % 2 === 1 ? <mark key={n}>{part}</mark> : part))}</span>
      {entry.cut && <span className="none"> … {t.log.cut}</span>}
    </>
  );
}

// The user's own jobs: what runs, what waits and why, and what has ended since they last looked.

import { HistoryError, transitions, type JobNotification, type PastJob } from '@kubecast/sdk';
import { useConnection, useFollow, useKubecast, useNotifications } from '@kubecast/sdk/react';
import { useEffect, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { formatTime } from '../texts/format.ts';
import { Notice } from '../app/Notice.tsx';
import { Dated } from '../connection/Dated.tsx';
import { describe } from '../connection/describe.ts';
import { jobs } from '../job/resources.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { linkTo, linkToJob, setView, type View } from '../view/view.ts';
import { HowTo } from './HowTo.tsx';
import { readingOf } from './reading.ts';
import './mine.css';

export function MinePage({ view }: { view: View }): ReactNode {
  const kc = useKubecast();
  const reading = readingOf(kc);
  const { jobs: mine, at, error } = useSyncExternalStore(reading.subscribe, reading.getSnapshot);
  // Says that something has changed; what it is like now, the list says.
  const past = useFollow(transitions(jobs, { owner: 'me', limit: 0 }));
  const connection = useConnection();
  const { items, markRead } = useNotifications();

  const latest = past.data.at(-1)?.seq;
  const live = past.status === 'live';
  useEffect(() => {
    if (live) reading.ask();
  }, [reading, latest, live]);

  const none = error instanceof HistoryError && error.status === 404;
  useEffect(() => {
    // Where nothing is known of anybody's own, whoever asked for nothing comes to what there is.
    if (none && location.hash.replace('#', '') === '') setView({ page: 'jobs' });
  }, [none]);

  const unread = useMemo(() => unreadOf(items), [items]);
  const retry = (): void => {
    past.retry();
    reading.ask();
  };

  if (none) {
    return (
      <Notice title="Nothing is known of your own jobs" said={error.message} onRetry={retry}>
        This gateway keeps no history, so it does not know which jobs are yours. <a href={linkTo('jobs', view)}>All jobs</a> are there.
      </Notice>
    );
  }
  const lost = connection && connection.phase !== 'live' && connection.reason !== '' ? describe(connection, formatTime).detail : '';
  if (!mine) {
    if (!error) return <p className="mine-none">Loading your jobs…</p>;
    return (
      <Notice title="Your jobs cannot be shown at the moment" said={lost || error.message} onRetry={retry}>
        They are tried again by themselves. <a href={linkTo('jobs', view)}>All jobs</a> are there meanwhile.
      </Notice>
    );
  }
  const told = past.status === 'live' || past.status === 'catching-up' || (past.status === 'loading' && lost === '');
  const old = !told || error !== undefined;
  const why = lost || 'The history cannot be read at the moment.';
  const fresh = mine.ended.filter(({ uid }) => unread.has(uid));
  const before = mine.ended.filter(({ uid }) => !unread.has(uid));
  const idsOf = (of: readonly PastJob[]): string[] => [...new Set(of.flatMap(({ uid }) => unread.get(uid) ?? []))];
  const read = (of: readonly PastJob[]): void => {
    markRead({ ids: idsOf(of) }).catch(() => undefined); // they stay where they are, then
  };
  const nothing = mine.running.length + mine.waiting.length + mine.ended.length === 0;
  return (
    <Dated asOf={old ? ((!told && past.asOf) || at) : undefined} why={old ? why : undefined}>
      <div className="mine" tabIndex={-1}>
        <h1>Your jobs</h1>
        {nothing ? (
          <HowTo view={view} />
        ) : (
          <>
            {fresh.length > 0 && (
              <Section title="Ended since you last looked" count={fresh.length} action={{ text: 'Mark as read', do: () => read(fresh) }}>
                {fresh.map((job) => (
                  <Job key={job.uid} job={job} view={view} at={endOf(job)} fresh onOpen={() => read([job])} />
                ))}
              </Section>
            )}
            <Section title="Waiting" count={mine.waiting.length} none="Nothing of yours waits.">
              {mine.waiting.map((job) => (
                <Job key={job.uid} job={job} view={view} at={job.createdAt} />
              ))}
            </Section>
            <Section title="Running" count={mine.running.length} none="Nothing of yours runs.">
              {mine.running.map((job) => (
                <Job key={job.uid} job={job} view={view} at={job.since} />
              ))}
            </Section>
            <Section title={fresh.length > 0 ? 'Ended before' : 'Ended in the last week'} count={before.length} none={fresh.length > 0 ? 'Nothing else of yours has ended in the last week.' : 'Nothing of yours has ended in the last week.'}>
              {before.map((job) => (
                <Job key={job.uid} job={job} view={view} at={endOf(job)} />
              ))}
            </Section>
            <p className="mine-more">
              {mine.more && 'There are more than these. '}
              <a href={linkTo('jobs', view)}>All jobs</a>
            </p>
          </>
        )}
      </div>
    </Dated>
  );
}

/** How a job ended. One that was removed afterwards, as by its time to live, ended no other way for that; if it has ended both ways, nobody knows which was last. */
function outcomeOf({ state, durations }: PastJob): string {
  const ends = state === 'Deleted' ? ['Succeeded', 'Failed'].filter((end) => end in durations) : [];
  return ends.length === 1 ? (ends[0] ?? state) : state;
}

const endOf = (job: PastJob): number => (outcomeOf(job) === job.state ? job.since : (job.endedAt ?? job.since));

/** The unread notifications of each job. */
function unreadOf(items: readonly JobNotification[]): ReadonlyMap<string, readonly string[]> {
  const ids = new Map<string, string[]>();
  for (const { id, read, transition, digest } of items) {
    if (read) continue;
    for (const uid of new Set([...(transition ? [transition] : []), ...digest].map((one) => one.uid))) ids.set(uid, [...(ids.get(uid) ?? []), id]);
  }
  return ids;
}

interface SectionProps {
  readonly title: string;
  readonly count: number;
  /** Said if there are none. */
  readonly none?: string;
  readonly action?: { readonly text: string; readonly do: () => void };
  readonly children: readonly ReactNode[];
}

function Section({ title, count, none, action, children }: SectionProps): ReactNode {
  return (
    <section className="mine-section" aria-label={title}>
      <h2>
        {title} <span className="chip-count">{count}</span>
        {action && (
          <button type="button" className="button button-small" onClick={action.do}>
            {action.text}
          </button>
        )}
      </h2>
      {count === 0 ? <p className="mine-none">{none}</p> : <ul>{children}</ul>}
    </section>
  );
}

interface JobProps {
  readonly job: PastJob;
  readonly view: View;
  /** Since when it has been so. */
  readonly at: number;
  readonly fresh?: boolean;
  readonly onOpen?: () => void;
}

function Job({ job, view, at, fresh, onOpen }: JobProps): ReactNode {
  // That all went well needs no reason.
  const state = outcomeOf(job);
  const why = state === 'Succeeded' ? '' : [job.reason, job.message].filter(Boolean).join(': ');
  return (
    <li data-name={job.name} data-state={state} data-fresh={fresh}>
      <StateIcon state={state} />
      <span className="mine-state">{state}</span>
      <span className="mine-name">
        <a href={linkToJob(job.namespace, job.name, view)} onClick={onOpen}>
          {job.name}
        </a>
        <span className="state-detail">
          {[job.namespace, job.queue, job.attempt > 1 ? `attempt ${job.attempt}` : '', state === job.state ? '' : 'removed'].filter(Boolean).join(' · ')}
        </span>
      </span>
      <span className="mine-age">
        <Age since={at} />
        {job.endedAt !== undefined && ' ago'}
      </span>
      {why && <span className="mine-why">{why}</span>}
    </li>
  );
}

// The user's own jobs: what runs, what waits and why, and what has ended since they last looked.

import { AskedError, transitions, type PastJob } from '@kubecast/sdk';
import { useConnection, useFollow, useKubecast, useNotifications } from '@kubecast/sdk/react';
import { useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { formatNumber, formatTime } from '../texts/format.ts';
import { Forbidden, Notice } from '../app/Notice.tsx';
import { Dated, useAway } from '../connection/Dated.tsx';
import { describe } from '../connection/describe.ts';
import { jobs } from '../job/resources.ts';
import { endOf, outcomeOf } from '../history/outcome.ts';
import { unreadOf } from '../inbox/seen.ts';
import { isForbidden, useFollowedAgain } from '../polling/polling.ts';
import { PlaceHint } from '../queues/Starts.tsx';
import { StateIcon } from '../state/StateMark.tsx';
import { whyNow } from '../state/why.ts';
import { linkTo, linkToRun, setView, type View } from '../view/view.ts';
import { HowTo, HowToSubmit } from './HowTo.tsx';
import { readingOf } from './jobs.ts';
import { stateName } from '../state/texts.ts';
import { t } from './texts.tsx';
import './home.css';

export function HomePage({ view }: { view: View }): ReactNode {
  const kc = useKubecast();
  const reading = readingOf(kc);
  const { data: mine, at, error } = useSyncExternalStore(reading.subscribe, reading.getSnapshot);
  // Says that something has changed; what it is like now, the list says.
  const past = useFollow(transitions(jobs, { owner: 'me', limit: 0 }));
  const connection = useConnection();
  const away = useAway();
  const { items, markRead } = useNotifications();
  const [all, setAll] = useState(false);

  const latest = past.data.at(-1)?.seq;
  const live = past.status === 'live';
  useEffect(() => {
    reading.ask(); // also of whoever comes back to the page
  }, [reading, latest, live]);
  useFollowedAgain(past.status, at);

  const none = error instanceof AskedError && error.status === 404;
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
      <Notice title={t.unknown} said={error.message} onRetry={retry}>
        {t.noHistory} {t.allThere(<a href={linkTo('jobs', view)}>{t.allJobs}</a>)}
      </Notice>
    );
  }
  const title = <h1 className="unseen">{t.title}</h1>;
  if (isForbidden(error)) {
    return (
      <>
        {title}
        <Forbidden said={error.message} onRetry={retry} />
      </>
    );
  }
  const lost = connection && connection.status !== 'live' && (connection.error || connection.reason) ? describe(connection, formatTime).detail : '';
  if (!mine) {
    if (!error) return <p className="mine-none">{t.loading}</p>;
    return (
      <>
        {title}
        <Notice title={t.notNow} said={lost || error.message} onRetry={retry}>
          {t.allThereMeanwhile(<a href={linkTo('jobs', view)}>{t.allJobs}</a>)}
        </Notice>
      </>
    );
  }
  const told = past.status === 'live' || past.reason === 'catching-up' || (past.status === 'loading' && lost === '');
  const old = !away && (!told || error !== undefined);
  const fresh = failedFirst(mine.ended.filter(({ uid }) => unread.has(uid)));
  const before = mine.ended.filter(({ uid }) => !unread.has(uid));
  const idsOf = (of: readonly PastJob[]): string[] => [...new Set(of.flatMap(({ uid }) => unread.get(uid) ?? []))];
  const read = (of: readonly PastJob[]): void => {
    markRead({ ids: idsOf(of) }).catch(() => undefined); // they stay where they are, then
  };
  const nothing = mine.running.length + mine.waiting.length + mine.ended.length === 0;
  return (
    <Dated asOf={old ? ((!told && past.asOf) || at) : undefined} why={old ? t.historyAway : undefined}>
      <div className="mine" tabIndex={-1}>
        <h1>{t.title}</h1>
        {nothing ? (
          <HowTo view={view} />
        ) : (
          <>
            {fresh.length > 0 && (
              <Section title={t.endedSince} count={fresh.length} action={{ text: t.markAsRead, do: () => read(fresh) }}>
                {(all ? fresh : fresh.slice(0, mostFresh)).map((job) => (
                  <Job key={job.uid} job={job} view={view} at={endOf(job)} fresh onOpen={() => read([job])} />
                ))}
              </Section>
            )}
            {fresh.length > mostFresh && !all && (
              <button type="button" className="button button-small" onClick={() => setAll(true)}>
                {t.showAll(fresh.length)}
              </button>
            )}
            <Section title={t.waiting} count={mine.waiting.length} none={t.noneWaits}>
              {mine.waiting.map((job) => (
                <Job key={job.uid} job={job} view={view} at={job.createdAt} />
              ))}
            </Section>
            <Section title={t.running} count={mine.running.length} none={t.noneRuns}>
              {mine.running.map((job) => (
                <Job key={job.uid} job={job} view={view} at={job.since} />
              ))}
            </Section>
            <Section title={fresh.length > 0 ? t.endedBefore : t.endedLately} count={before.length} none={fresh.length > 0 ? t.noneElse : t.noneEnded}>
              {before.map((job) => (
                <Job key={job.uid} job={job} view={view} at={endOf(job)} />
              ))}
            </Section>
            <p className="mine-more">
              {mine.more && `${t.more} `}
              <a href={linkTo('jobs', view)}>{t.allJobs}</a>
            </p>
            <HowToSubmit />
          </>
        )}
      </div>
    </Dated>
  );
}

/** So many of those that have ended are shown at first: what runs and waits stays in sight. */
const mostFresh = 10;

/** Those that somebody has to look at, before those that went well. */
const failedFirst = (jobs: readonly PastJob[]): readonly PastJob[] => [...jobs].sort((a, b) => Number(outcomeOf(b) === 'Failed') - Number(outcomeOf(a) === 'Failed'));

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
        {title} <span className="chip-count">{formatNumber(count)}</span>
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
  const state = outcomeOf(job);
  const why = whyNow(job);
  return (
    <li data-name={job.name} data-state={state} data-fresh={fresh}>
      <StateIcon state={state} />
      <span className="mine-state">{stateName(state)}</span>
      <span className="mine-name">
        <a href={linkToRun(job, view)} translate="no" onClick={onOpen}>
          {job.name}
        </a>
        <span className="state-detail" translate="no">
          {[job.namespace, job.queue, job.progress && job.progress.of > 1 ? t.progress(job.progress.done, job.progress.of) : '', job.attempt > 1 ? t.attempt(job.attempt) : '', state === job.state ? '' : t.removed].filter(Boolean).join(' · ')}
        </span>
      </span>
      <span className="mine-age">
        <Age since={at} in={job.endedAt === undefined ? undefined : t.ago} />
      </span>
      {job.state === 'Queued' && job.place && (
        <span className="mine-why">
          <PlaceHint place={job.place} />
        </span>
      )}
      {why && <span className="mine-why" translate="no">{why}</span>}
    </li>
  );
}

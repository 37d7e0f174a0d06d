// The user's own jobs: what runs, what waits and why, and what has ended since they last looked.

import { AskedError, inboxOf, transitions, type PastJob, type Transition, type WatchSnapshot } from '@kubecast/sdk';
import { useConnection, useKubecast } from '@kubecast/sdk/react';
import { useEffect, useMemo, useState, useSyncExternalStore, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Lasted, ranLonger } from '../age/Elapsed.tsx';
import { formatNumber, formatTime } from '../texts/format.ts';
import { Forbidden, Notice } from '../app/Notice.tsx';
import { inCluster } from '../clusters/inCluster.ts';
import { isMissing, leading, Missing } from '../clusters/Missing.tsx';
import { useServed, viewIn } from '../clusters/served.ts';
import { t as ofClusters } from '../clusters/texts.ts';
import { useClusters, useKnown } from '../clusters/together.ts';
import { Dated, useAway } from '../connection/Dated.tsx';
import { describe } from '../connection/describe.ts';
import { jobs } from '../job/resources.ts';
import { endOf, outcomeOf } from '../history/outcome.ts';
import { unreadOf } from '../inbox/seen.ts';
import { isForbidden } from '../polling/polling.ts';
import { PlaceHint } from '../queues/Starts.tsx';
import { StateIcon } from '../state/StateMark.tsx';
import { whyNow } from '../state/why.ts';
import { formatView, linkTo, linkToRun, setView, viewAt, type View } from '../view/view.ts';
import { HowTo, HowToSubmit } from './HowTo.tsx';
import { joined, readingOf } from './jobs.ts';
import { stateName } from '../state/texts.ts';
import { t } from './texts.tsx';
import './home.css';

export function HomePage({ view }: { view: View }): ReactNode {
  const inbox = inboxOf(inCluster(useKubecast(), '')); // of all clusters, and the header's
  const clusters = useClusters(view);
  const readings = useMemo(() => clusters.map(({ kc }) => readingOf(kc)), [clusters]);
  // Says that something has changed; what it is like now, the list says.
  const pasts = useMemo(() => clusters.map(({ kc }) => kc.follow(transitions(jobs, { owner: 'me', limit: 0 }))), [clusters]);
  const known = useKnown(readings, pasts, signalOf);
  const connection = useConnection();
  const away = useAway();
  const { data: items } = useSyncExternalStore(inbox.subscribe, inbox.getSnapshot);
  const [all, setAll] = useState(false);

  // What is missing of several is said beside the others' rows, if there are others.
  const partly = !known.every(isMissing);
  const lead = leading(known);
  const { status = 'loading', reason, asOf } = lead?.told ?? {};
  const { at, error } = lead?.read ?? {};
  const mine = useMemo(() => joined(known.flatMap(({ read }) => read.data ?? [])), [known]);
  const none = error instanceof AskedError && error.status === 404;
  useEffect(() => {
    // Where nothing is known of anybody's own, whoever asked for nothing comes to what there is.
    if (none && location.hash.replace('#', '') === '') setView({ page: 'jobs' });
  }, [none]);

  const unread = useMemo(() => unreadOf(items), [items]);
  const retry = (): void => {
    for (const past of pasts) past.retry();
    for (const reading of readings) reading.ask();
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
  const told = status === 'live' || reason === 'catching-up' || (status === 'loading' && lost === '');
  const old = !away && (!told || error !== undefined);
  const fresh = failedFirst(mine.ended.filter(({ uid }) => unread.has(uid)));
  const before = mine.ended.filter(({ uid }) => !unread.has(uid));
  const idsOf = (of: readonly PastJob[]): string[] => [...new Set(of.flatMap(({ uid }) => unread.get(uid) ?? []))];
  const read = (of: readonly PastJob[]): void => {
    inbox.markRead({ ids: idsOf(of) }).catch(() => undefined); // they stay where they are, then
  };
  const nothing = known.every(({ read }) => read.data) && mine.running.length + mine.waiting.length + mine.ended.length === 0;
  return (
    <Dated asOf={old ? ((!told && asOf) || at) : undefined} why={old ? t.historyAway : undefined}>
      <div className="mine" tabIndex={-1}>
        <h1>{t.title}</h1>
        {clusters.length > 1 && partly && <Missing clusters={clusters} known={known} onRetry={retry} />}
        {nothing ? (
          <HowTo view={view} />
        ) : (
          <>
            {fresh.length > 0 && (
              <Section title={t.endedSince} count={fresh.length} action={{ text: t.markAsRead, do: () => read(fresh) }}>
                {(all ? fresh : fresh.slice(0, mostFresh)).map((job) => (
                  <Job key={keyOf(job)} job={job} view={view} at={endOf(job)} fresh onOpen={() => read([job])} />
                ))}
              </Section>
            )}
            {fresh.length > mostFresh && !all && (
              <p className="mine-all">
                <button type="button" className="button button-small" onClick={() => setAll(true)}>
                  {t.showAll(fresh.length)}
                </button>
              </p>
            )}
            <Section title={t.waiting} count={mine.waiting.length} none={t.noneWaits}>
              {mine.waiting.map((job) => (
                <Job key={keyOf(job)} job={job} view={view} at={job.createdAt} />
              ))}
            </Section>
            <Section title={t.running} count={mine.running.length} none={t.noneRuns}>
              {mine.running.map((job) => (
                <Job key={keyOf(job)} job={job} view={view} at={job.since} least={ranLonger(job)} />
              ))}
            </Section>
            <Section title={fresh.length > 0 ? t.endedBefore : t.endedLately} count={before.length} none={fresh.length > 0 ? t.noneElse : t.noneEnded}>
              {before.map((job) => (
                <Job key={keyOf(job)} job={job} view={view} at={endOf(job)} />
              ))}
            </Section>
            <p className="mine-more">
              {mine.more && `${t.more} `}
              <a href={formatView({ ...viewAt('#history', view), owner: 'me' })}>{t.older}</a> <a href={linkTo('jobs', view)}>{t.allJobs}</a>
            </p>
            <HowToSubmit />
          </>
        )}
      </div>
    </Dated>
  );
}

/** Of one cluster under two names all are there twice. */
const keyOf = ({ uid, cluster }: PastJob): string => `${uid} ${cluster}`;

/** What asks for the list again: a state that has changed, or that it is followed again. */
const signalOf = ({ data, status }: WatchSnapshot<Transition>): string => `${data.at(-1)?.seq ?? ''} ${status === 'live'}`;

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
  /** It may have been so for longer. */
  readonly least?: boolean;
  readonly fresh?: boolean;
  readonly onOpen?: () => void;
}

function Job({ job, view, at, least = false, fresh, onOpen }: JobProps): ReactNode {
  const served = useServed();
  const state = outcomeOf(job);
  const why = whyNow(job);
  return (
    <li data-name={job.name} data-state={state} data-fresh={fresh}>
      <StateIcon state={state} />
      <span className="mine-state">{stateName(state)}</span>
      <span className="mine-name">
        <a href={linkToRun(job, viewIn(served, view, job.cluster))} translate="no" onClick={onOpen}>
          {job.name}
        </a>
        <span className="state-detail" translate="no">
          {[served.length > 1 && ofClusters.named(job.cluster), job.namespace, job.queue, job.progress && job.progress.of > 1 ? t.progress(job.progress.done, job.progress.of) : '', job.attempt > 1 ? t.attempt(job.attempt) : '', state === job.state ? '' : t.removed].filter(Boolean).join(' · ')}
        </span>
      </span>
      <span className="mine-age">
        {least ? <Lasted of={{ over: 0, since: at }} least /> : <Age since={at} in={job.endedAt === undefined && job.state !== 'Deleted' ? undefined : t.ago} />}
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

// How the cluster's jobs fare: what there is now, how what was ended, how long jobs wait and run, and who uses how much.

import { isFinal, pastEnds, pastUsage, type Transition, transitions, type Status } from '@kubecast/sdk';
import { useCount, useFollow, useKubecast } from '@kubecast/sdk/react';
import { useCallback, useMemo, type CSSProperties, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { useNow } from '../age/clock.ts';
import { Dated, useAway } from '../connection/Dated.tsx';
import { Choice } from '../filters/Choice.tsx';
import { Forbidden } from '../app/Notice.tsx';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { statusPath } from '../filters/status.ts';
import { jobs, pods } from '../job/resources.ts';
import { queuePath } from '../jobs/fields.ts';
import { CutName } from '../listing/CutName.tsx';
import { useFollowedAgain, useReading } from '../polling/polling.ts';
import { whyOf } from '../state/why.ts';
import { formatDuration, formatNumber } from '../texts/format.ts';
import { formatView, linkTo, linkToRun, parseView, setView, viewAt, type View } from '../view/view.ts';
import { Chart } from './Chart.tsx';
import { Teams } from './Teams.tsx';
import { Wall, wallTab } from './Wall.tsx';
import { Wrong } from './Wrong.tsx';
import { t } from './texts.ts';
import { endsAt, spans, stepOf, stepsUntil } from './spans.ts';
import '../job/job.css';
import '../listing/listing.css';
import './overview.css';

/** So many of the newest failures are named. */
const named = 8;
/** Ends are counted again at most so often, in milliseconds. */
const endsGap = 1_500;
/** What is summed up is read again at most so often, in milliseconds. */
const gap = 15_000;
const day = { length: 24 * 3_600_000, step: '1h', stepLength: 3_600_000 };
/** What took less than a second took something: a scale whose top is 0 says nothing. */
export const inSeconds = (value: number): string => (value > 0 && value < 1 ? `<${formatDuration(1_000)}` : formatDuration(value * 1_000));

export function OverviewPage({ view }: { view: View }): ReactNode {
  const kc = useKubecast();
  const { namespace } = view;
  const since = Object.hasOwn(spans, view.since) ? view.since : '24h';
  const span = spans[since] ?? day;
  // Says that there is something to count again.
  const over = useFollow(transitions(jobs, { namespace, states: ['Succeeded', 'Failed', 'Cancelled'], limit: 0, keep: 1 }));
  const failing = useFollow(transitions(jobs, { namespace, states: ['Failed'], limit: 4 * named, keep: 4 * named }));
  const last = over.status === 'live' ? (over.data.at(-1)?.seq ?? 'live') : undefined;
  const read = useCallback(() => pastUsage(kc, jobs, { namespace, by: 'resource', since, step: span.step }), [kc, namespace, since, span.step]);
  const times = useReading(read, last, gap);
  const readEnds = useCallback(() => pastEnds(kc, jobs, { namespace, by: 'resource', since, step: span.step }), [kc, namespace, since, span.step]);
  const ends = useReading(readEnds, last, endsGap);
  useFollowedAgain(over.status, times.at);
  useFollowedAgain(failing.status, times.at);

  // Steps move on as wholes, or everything would be drawn anew each second.
  const now = Math.ceil(useNow() / 60_000) * 60_000;
  const steps = useMemo(() => stepsUntil(now, span), [now, span]);
  const ended = useMemo(() => endsAt(ends.data ?? [], steps, span.stepLength), [ends.data, steps, span]);
  const timesAt = useMemo(() => {
    // By the gateway's clock they begin a moment earlier or later.
    const at = new Map((times.data ?? []).map((one) => [stepOf((one.from ?? NaN) + span.stepLength / 2, steps, span.stepLength), one]));
    const series = (of: 'waitedSeconds' | 'ranSeconds', which: 'p50' | 'p90') => steps.map((_, n) => at.get(n)?.[of]?.[which]);
    return {
      waits: [
        { name: t.half, tone: 'half', values: series('waitedSeconds', 'p50') },
        { name: t.most, tone: 'most', values: series('waitedSeconds', 'p90') },
      ],
      runs: [
        { name: t.half, tone: 'half', values: series('ranSeconds', 'p50') },
        { name: t.most, tone: 'most', values: series('ranSeconds', 'p90') },
      ],
    } as const;
  }, [times.data, steps, span]);

  const failures = useMemo(() => latestOf(failing.data.filter(({ at }) => stepOf(at, steps, span.stepLength) !== undefined), named), [failing.data, steps, span]);
  const all = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);
  const none = isFinal(over) && (times.error as { status?: number } | undefined)?.status === 404;
  const retry = (): void => {
    over.retry();
    failing.retry();
    times.retry();
    ends.retry();
  };
  const failed = useAway() || none ? undefined : (times.error ?? ends.error);
  const why = failed && t.old;
  const endsChart = (
    <Chart
      title={t.ends}
      as="bars"
      loading={!ends.data && !ends.error}
      steps={steps}
      series={[
        { name: t.endedWell, tone: 'done', values: ended.succeeded },
        { name: t.failed, tone: 'failed', values: ended.failed },
        { name: t.cancelled, tone: 'cancelled', values: ended.cancelled },
      ]}
      summary={ends.data ? t.endsOf(all(ended.succeeded), all(ended.failed), all(ended.cancelled)) : t.loading}
    />
  );
  if (view.tab === wallTab) {
    return (
      <Wall view={view} why={why}>
        <div className="overview">
          <Now view={view} />
          <Wrong view={view} since={since} signal={last} />
          {none ? <p className="chart-says">{t.noHistory}</p> : !isFinal(over) && <div className="charts">{endsChart}</div>}
        </div>
      </Wall>
    );
  }
  return (
    <>
      <div className="toolbar">
        <h1 className="toolbar-title">{t.title}</h1>
        <NamespaceFilter selected={namespace} visible={over.namespaces} />
        <Choice label={t.since} value={since} options={Object.entries(t.spans)} onChoose={(one) => setView({ since: one === '24h' ? '' : one })} />
        <a className="button to-wall" href={formatView({ ...view, tab: wallTab })}>
          {t.wall}
        </a>
      </div>
      <Dated asOf={times.at} why={why}>
        <div className="overview" tabIndex={-1}>
          <Now view={view} />
          <Wrong view={view} since={since} signal={last} />
          {none ? (
            <p className="chart-says">{t.noHistory}</p>
          ) : isFinal(over) ? (
            <Forbidden said={over.error?.message} onRetry={retry} />
          ) : (
            <>
              <div className="charts">
                {endsChart}
                <Chart title={t.waits} as="lines" steps={steps} series={timesAt.waits} format={inSeconds} loading={!times.data && !times.error} />
                <Chart title={t.runs} as="lines" steps={steps} series={timesAt.runs} format={inSeconds} loading={!times.data && !times.error} />
              </div>
              <Teams view={view} since={since} signal={last} />
              <Failures rows={failures} loading={failing.status === 'loading'} view={view} />
            </>
          )}
        </div>
      </Dated>
    </>
  );
}

/** Those that happened last: what was found after the fact is told last, and happened before. */
export function latestOf(transitions: readonly Transition[], count: number): readonly Transition[] {
  return [...transitions].reverse().sort((a, b) => b.at - a.at).slice(0, count);
}

/** The newest ends that were no good ones. */
function Failures({ rows, loading, view }: { readonly rows: readonly Transition[]; readonly loading: boolean; readonly view: View }): ReactNode {
  return (
    <section className="overview-failures" aria-label={t.failures}>
      <h2>
        {t.failures} <a href={formatView({ ...viewAt('#history', view), namespace: view.namespace, state: 'Failed' })}>{t.allFailures}</a>
      </h2>
      {rows.length === 0 ? (
        <p className="none">{loading ? t.loading : t.noFailures}</p>
      ) : (
        <ul>
          {rows.map((one) => (
            <li key={one.seq} data-name={one.name}>
              <a className="row-link" href={linkToRun(one, view)}>
                <CutName text={one.name} />
              </a>
              <span className="state-detail" translate="no">
                {[one.namespace, one.owner].filter(Boolean).join(' · ')}
              </span>
              <span className="failure-why" translate="no">
                {whyOf(one)}
              </span>
              <span className="failure-at">
                <Age since={one.at} in={t.ago} />
              </span>
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}

/** What there is at this moment, counted by the gateway. */
function Now({ view }: { view: View }): ReactNode {
  const { namespace } = view;
  const active = useCount(jobs, ['status.active', 'status.ready'], { namespace, where: 'status.active!=', limit: 1_000 });
  const held = useCount(jobs, [queuePath], { namespace, where: 'spec.suspend=true', limit: 1_000 });
  const ofPods = useCount(pods, [statusPath], { namespace, limit: 100, conflate: 1_000 });
  const sumOf = ({ data }: typeof active, which: (values: readonly string[]) => boolean): number => data.filter(({ values }) => which(values)).reduce((all, { count }) => all + count, 0);
  const isReady = ([, ready = '']: readonly string[]): boolean => Number(ready) > 0;
  const inState = (state: string): number => ofPods.data.find(({ value }) => value === state)?.count ?? 0;
  const jobsOf = (state: string): string => formatView({ ...viewAt('#jobs', view), namespace, state });
  const podsOf = (state: string): string => formatView({ ...parseView(linkTo('pods', view)), search: '', state });
  return (
    <ul className="tiles" aria-label={t.now}>
      <Tile name={t.running} tone="running" href={jobsOf('Running')} count={known(active.status) && sumOf(active, isReady)} />
      <Tile name={t.waiting} tone="waiting" href={jobsOf('Pending')} count={known(active.status) && sumOf(active, (values) => !isReady(values))} />
      <Tile name={t.queued} tone="waiting" href={jobsOf('Queued')} count={known(held.status) && sumOf(held, ([queue]) => queue !== '')} />
      <Tile name={t.suspended} tone="waiting" href={jobsOf('Suspended')} count={known(held.status) && sumOf(held, ([queue]) => queue === '')} />
      <Tile name={t.podsRunning} tone="running" href={podsOf('Running')} count={known(ofPods.status) && inState('Running')} />
      <Tile name={t.podsPending} tone="waiting" href={podsOf('Pending')} count={known(ofPods.status) && inState('Pending')} />
    </ul>
  );
}

const known = (status: Status): boolean => status !== 'loading' && !isFinal({ status });

/** `count`: false where it is not known. */
function Tile({ name, tone, href, count }: { name: string; tone: string; href: string; count: number | false }): ReactNode {
  const said = count === false ? t.notSeen : formatNumber(count);
  return (
    <li>
      <a href={href} className={`tile tile-${tone}`}>
        <span className="tile-count" style={{ '--length': said.length } as CSSProperties}>
          {said}
        </span>
        <span className="tile-name">{name}</span>
      </a>
    </li>
  );
}

// All jobs that there ever were, as far as the history goes back, those that are gone as well.

import { AskedError, isFinal, transitions, type PastJob, type PastQuery, type Transition, type WatchSnapshot } from '@kubecast/sdk';
import { useMemo, useState, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Lasted, ranLonger, timesAfter } from '../age/Elapsed.tsx';
import { Forbidden, Notice } from '../app/Notice.tsx';
import { isMissing, leading, Missing } from '../clusters/Missing.tsx';
import { useServed, viewIn } from '../clusters/served.ts';
import { t as ofClusters } from '../clusters/texts.ts';
import { useClusters, useKnown } from '../clusters/together.ts';
import { shownColumns } from '../columns/columns.ts';
import { Dated, useAway } from '../connection/Dated.tsx';
import { Choice } from '../filters/Choice.tsx';
import { Export } from '../export/Export.tsx';
import { ofHistory } from '../export/table.ts';
import { Folded } from '../filters/Folded.tsx';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { Search } from '../filters/Search.tsx';
import { jobs } from '../job/resources.ts';
import { Progress } from '../jobs/Progress.tsx';
import { CutName } from '../listing/CutName.tsx';
import { PlainTable, type PlainColumn } from '../listing/PlainTable.tsx';
import { isForbidden, Reading } from '../polling/polling.ts';
import { useRested } from '../scheduling/useRested.ts';
import { causes, isCauseNamed } from '../state/causes.ts';
import { StateMark } from '../state/StateMark.tsx';
import { useMediaQuery } from '../table/useMediaQuery.ts';
import { stateName } from '../state/texts.ts';
import { mayBeExplained, untilExplained, whyInRow } from '../state/why.ts';
import { linkToRun, setView, type View } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { outcomeOf } from './outcome.ts';
import { isNext, joined, JobList, type Leafed } from './JobList.ts';
import { t } from './texts.ts';

const states = ['Submitted', 'Queued', 'Suspended', 'Pending', 'Running', 'Retrying', 'Succeeded', 'Failed', 'Cancelled', 'Deleted'];

/** What can be chosen among: what jobs often end of, in the page's words, and what else is there, in the gateway's. */
export function causesAmong(rows: readonly PastJob[], chosen: string): readonly (readonly [string, string, 'foreign'?])[] {
  const others = new Set([...rows.map((job) => job.cause?.reason ?? ''), chosen].filter((one) => one !== '' && !isCauseNamed(one)));
  return [...Object.entries(causes), ...[...others].sort().map((one) => [one, one, 'foreign'] as const)];
}

/** What has happened since a job was read. */
export function patched(items: readonly PastJob[], since: readonly Transition[]): readonly PastJob[] {
  const told = new Map<string, Transition[]>();
  for (const next of since) {
    const others = told.get(next.uid);
    if (others) others.push(next);
    else told.set(next.uid, [next]);
  }
  return items.map((job) => {
    const all = told.get(job.uid) ?? [];
    const read = all.findLastIndex(({ to, at }) => to === job.state && at === job.since);
    return all.slice(read + 1).reduce(after, job);
  });
}

function after(job: PastJob, next: Transition): PastJob {
  if (next.at < job.since || next.to === job.state) return job;
  const { to, at, reason, message, attempt, cause } = next;
  // How long it was in its state is said by that it was in it at all, until it is read again.
  const durations = { ...job.durations, [job.state]: (job.durations[job.state] ?? 0) + (at - job.since) / 1_000 };
  return { ...job, state: to, since: at, reason, message, cause: to === 'Deleted' ? job.cause : cause, attempt, durations, ...timesAfter(job, next), startedAt: to === 'Running' ? (job.startedAt ?? at) : job.startedAt };
}

type PastColumn = PlainColumn<PastJob> & { /** Whether a job has something of it, of a column that is not worth its place if none has. */ readonly has?: (job: PastJob) => boolean };

const hasProgress = ({ progress }: PastJob): boolean => (progress?.of ?? 0) > 1;

export const columns: readonly PastColumn[] = [
  { id: 'name', header: t.name, cell: (job) => <Name job={job} /> },
  { id: 'state', header: t.state, cell: (job) => <Outcome job={job} /> },
  { id: 'progress', header: t.progress, has: hasProgress, cell: (job) => (job.progress && hasProgress(job) ? <Progress succeeded={job.progress.done} completions={job.progress.of} /> : <span className="none">–</span>) },
  { id: 'namespace', header: t.namespace, cell: ({ namespace }) => <span translate="no">{namespace}</span> },
  { id: 'owner', header: t.owner, cell: ({ owner }) => <span translate="no">{owner || '–'}</span> },
  { id: 'queue', header: t.queue, has: ({ queue }) => queue !== '', cell: ({ queue }) => <span translate="no">{queue || '–'}</span> },
  { id: 'waited', header: t.waited, numeric: true, cell: ({ waited }) => <Lasted of={waited} /> },
  { id: 'ran', header: t.ran, numeric: true, cell: (job) => <Lasted of={job.ran} least={ranLonger(job)} /> },
  { id: 'created', header: t.created, numeric: true, cell: ({ createdAt }) => <Age since={createdAt} in={t.ago} /> },
];

/** The same, where there are several clusters. */
const withClusters: readonly PastColumn[] = [
  ...columns.slice(0, 1),
  { id: 'cluster', header: ofClusters.cluster, cell: ({ cluster }) => <span translate="no">{cluster}</span> },
  ...columns.slice(1),
];

/** On a phone each row has below its name what else tells runs apart, so that all of it is in sight. */
const onPhone: readonly PastColumn[] = [
  { id: 'name', header: t.name, cell: (job) => <Name job={job} beside /> },
  { id: 'state', header: t.state, cell: (job) => <Outcome job={job} /> },
];

/** Those of a table that has these rows: what was chosen, or else what one of them has, as far as there is room. */
export function columnsFor(all: readonly PastColumn[], rows: readonly PastJob[], chosen: string, narrow = false): readonly PastColumn[] {
  if (narrow && chosen === '') return onPhone;
  const shown = shownColumns(all, chosen);
  return all.filter(({ id, has }) => shown.has(id) && (chosen !== '' || !has || rows.some(has)));
}

/** What asks for the list again. */
const signalOf = (told: WatchSnapshot<Transition>): string | undefined => (told.status === 'live' ? (told.data.at(-1)?.seq ?? 'live') : isFinal(told) ? 'denied' : undefined);

/** Until what no state says has changed, in milliseconds. */
const untilReadAgain = ({ items }: { readonly items: readonly PastJob[] }): number | undefined => (items.some(mayBeExplained) ? untilExplained : undefined);

export function HistoryPage({ view }: { view: View }): ReactNode {
  const clusters = useClusters(view);
  const served = useServed();
  const { namespace, state, owner, queue, cause, since } = view;
  const search = useRested(view.search.trim());
  const query = useMemo(
    (): PastQuery => ({ namespace, owner, states: state ? [state] : undefined, queues: queue ? [queue] : undefined, causes: cause ? [cause] : undefined, search, since }),
    [namespace, state, owner, queue, cause, search, since],
  );
  const lists = useMemo(() => clusters.map(({ kc }) => new JobList(kc, query)), [clusters, query]);
  const readings = useMemo(() => lists.map((list) => new Reading(list.newest, 1_500, untilReadAgain)), [lists]);
  const taken = useMemo(() => ofHistory(clusters, query), [clusters, query]);
  // Says that something has changed, and what of that which was read before.
  const pasts = useMemo(() => clusters.map(({ kc }) => kc.follow(transitions(jobs, { namespace, owner, search, limit: 0, keep: 1_000 }))), [clusters, namespace, owner, search]);
  const known = useKnown(readings, pasts, signalOf);
  // What is missing of several is said beside the others' rows, if there are others.
  const partly = !known.every(isMissing);
  const lead = leading(known);
  const { at, error } = lead?.read ?? {};
  const leafed = useMemo(() => known.flatMap((one): Leafed[] => (one.read.data ? [{ items: patched(one.read.data.items, one.told.data), more: one.read.data.more && !(partly && isMissing(one)) }] : [])), [known, partly]);
  const data = useMemo(() => (leafed.length > 0 ? joined(leafed, search !== '') : undefined), [leafed, search]);
  const rows = data?.items;
  const [leafing, setLeafing] = useState(false);
  // Its database can be away while all else is there.
  const old = useAway() === undefined && !partly;
  const queues = useMemo(() => [...new Set([...(rows ?? []).map((job) => job.queue), queue])].filter(Boolean).sort(), [rows, queue]);

  const among = useMemo(() => causesAmong(rows ?? [], cause), [rows, cause]);

  const all = served.length > 1 ? withClusters : columns;
  const narrow = useMediaQuery('(max-width: 700px)');
  const chosen = useMemo(() => columnsFor(all, rows ?? [], view.columns, narrow), [all, rows, view.columns, narrow]);

  const more = (): void => {
    setLeafing(true);
    const next = lists.filter((_, n) => {
      const one = known[n];
      return one?.read.data && !(partly && isMissing(one)) && isNext(one.read.data, leafed, search !== '');
    });
    // One of which the older ones cannot be read has not the newest either, and that is said.
    void Promise.allSettled(next.map((list) => list.older())).finally(() => {
      setLeafing(false);
      retry();
    });
  };
  const retry = (): void => {
    for (const reading of readings) reading.retry();
  };
  const again = (): void => {
    for (const past of pasts) past.retry();
    retry();
  };
  const filters = (
    <div className="toolbar">
      <h1 id="history-title" className="toolbar-title">{t.title}</h1>
      <Search value={view.search} label={t.search} />
      <Folded set={[namespace, owner, state, queue, cause, since].filter(Boolean).length}>
        <NamespaceFilter selected={namespace} />
        <Choice label={t.owner} value={owner} options={[['', t.everybody], ['me', t.mine], ...(owner && owner !== 'me' ? [[owner, owner] as const] : [])]} onChoose={(one) => setView({ owner: one })} />
        <Choice label={t.state} value={state} options={[['', t.allStates], ...states.map((one) => [one, stateName(one)] as const)]} onChoose={(one) => setView({ state: one })} />
        {(queues.length > 0 || queue) && <Choice label={t.queue} value={queue} options={[['', t.anyQueue], ...queues.map((one) => [one, one, 'foreign'] as const)]} onChoose={(one) => setView({ queue: one })} />}
        <Choice label={t.cause} value={cause} options={[['', t.anyCause], ...among]} onChoose={(one) => setView({ cause: one })} />
        <Choice label={t.since} value={since} options={[['', t.anyTime], ...Object.entries(t.spans)]} onChoose={(one) => setView({ since: one })} />
      </Folded>
      {rows && <span className="toolbar-end">{t.shown(rows.length) + (data?.more ? '+' : '')}</span>}
      <ViewMenu columns={all} />
      {rows && rows.length > 0 && <Export of={taken} />}
    </div>
  );
  if (error instanceof AskedError && error.status === 404) {
    return (
      <Notice title={t.noHistory} said={error.message} onRetry={retry}>
        {t.noHistoryWhy}
      </Notice>
    );
  }
  if (isForbidden(error)) {
    return (
      <>
        {filters}
        <Forbidden said={error.message} onRetry={again} />
      </>
    );
  }
  if (error && !rows) {
    return (
      <>
        {filters}
        <Notice title={t.failed} said={error.message} onRetry={retry}>
          {t.failedWhy}
        </Notice>
      </>
    );
  }
  return (
    <>
      {filters}
      {clusters.length > 1 && partly && <Missing clusters={clusters} known={known} onRetry={again} />}
      <Dated asOf={error ? at : lead?.told.asOf} why={old ? t.old : undefined}>
        <PlainTable labelledBy="history-title" columns={chosen} rows={rows ?? []} keyOf={({ uid, cluster }) => `${uid} ${cluster}`} href={(job) => linkToRun(job, viewIn(served, view, job.cluster))}>
          {!rows ? (
            <p className="job-none">{t.loading}</p>
          ) : rows.length === 0 && !data?.more ? (
            <p className="job-none">{t.none}</p>
          ) : (
            <p className="plain-more">
              {rows.length === 0 && <span>{t.noneYet} </span>}
              {data?.more ? (
                <button type="button" className="button" onClick={more} disabled={leafing}>
                  {leafing ? t.loading : t.more}
                </button>
              ) : (
                t.all
              )}
            </p>
          )}
        </PlainTable>
      </Dated>
    </>
  );
}

function Name({ job: { name, parent, namespace, cluster, createdAt }, beside = false }: { readonly job: PastJob; readonly beside?: boolean }): ReactNode {
  const served = useServed();
  return (
    <>
      <CutName text={name} />
      {parent && <span className="state-detail" title={parent.resource}>{t.partOf(parent.name)}</span>}
      {beside && (
        <span className="plain-beside">
          <span translate="no">{[served.length > 1 && ofClusters.named(cluster), namespace].filter(Boolean).join(' · ')}</span> · {t.created} <Age since={createdAt} in={t.ago} />
        </span>
      )}
    </>
  );
}

function Outcome({ job }: { job: PastJob }): ReactNode {
  const state = outcomeOf(job);
  return <StateMark state={state} detail={[whyInRow(job), state === job.state ? '' : t.removed].filter(Boolean).join(' · ')} message={state === 'Succeeded' ? '' : job.message} />;
}

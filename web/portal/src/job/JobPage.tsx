// One job: how it stands and came to it, what its pods write, and what the cluster says about it. By uid it is that run of its name for ever.

import { isFinal, type PastJob, transitions } from '@kubecast/sdk';
import { useFollow, useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Lasted, NotYet, ranLonger } from '../age/Elapsed.tsx';
import { timesOf } from '../jobs/RunTime.tsx';
import { outcomeOf } from '../history/outcome.ts';
import { jobRow, type JobRow } from '../jobs/job.ts';
import { Progress } from '../jobs/Progress.tsx';
import { Conditions } from '../object/Conditions.tsx';
import { Facts, ObjectFrame } from '../object/ObjectFrame.tsx';
import { podFields } from '../pods/fields.ts';
import { podRow, type Pod } from '../pods/pod.ts';
import { WhyUnwritten } from '../pods/WhyUnwritten.tsx';
import { JobPlace } from '../queues/JobPlace.tsx';
import { useShows } from '../inbox/seen.ts';
import { inWords } from '../jobs/State.tsx';
import { causeName } from '../state/causes.ts';
import { StateMark } from '../state/StateMark.tsx';
import { linkTo, type View } from '../view/view.ts';
import { Events, eventFields, eventsName, ofJob } from './Events.tsx';
import { KeptLogs, KeptSpec, lostPods, PastLogs, usePastJob } from './Kept.tsx';
import { LogView } from '../log/LogView.tsx';
import { MemoryLimit, Parts, pastFacts, PastMark, Why } from './PastFacts.tsx';
import { OwnerTree } from './OwnerTree.tsx';
import { PodsEver, PodsNow } from './Pods.tsx';
import { Runs, useOtherRuns } from './Runs.tsx';
import { Timeline } from './Timeline.tsx';
import { latestLife, withCause } from './life.ts';
import { page, Waiting } from '../pages/page.tsx';
import { events, jobs, pods } from './resources.ts';
import { Yaml } from './Yaml.tsx';
import { t } from './texts.ts';
import { TooLarge } from './TooLarge.tsx';
import { unwrittenOf } from './unwritten.ts';
import { WaitedLately } from './WaitedLately.tsx';

const ofRuns = [...podFields, 'metadata.labels.batch\\.kubernetes\\.io/controller-uid'];

const Compare = page(() => import('../compare/Compare.tsx').then((compare) => compare.Compare));

interface JobPageProps {
  readonly view: View;
  readonly namespace: string;
  readonly name: string;
  /** Which of those that ever had the name; undefined: the one that has it, or had it last. */
  readonly uid?: string;
  /** What a request has to carry beside cookies. */
  readonly token: string | undefined;
}

export function JobPage({ view, namespace, name, uid: asked, token }: JobPageProps): ReactNode {
  const watched = useWatch(jobs, { namespace, name });
  const past = useFollow(transitions(jobs, { namespace, name, uid: asked, limit: 500 }));
  const ofPods = useWatch(pods, { namespace, labels: `batch.kubernetes.io/job-name=${name}`, fields: ofRuns });
  const said = useWatch(events, { namespace, search: eventsName(name), fields: eventFields });

  const named = watched.data[0];
  // Another one may have the name now.
  const job = asked === undefined || named?.metadata.uid === asked ? named : undefined;
  const other = named !== job;
  const row = useMemo(() => job && jobRow(job), [job]);
  const life = useMemo(() => latestLife(past.data, asked ?? job?.metadata.uid), [past.data, asked, job]);
  const podRows = useMemo(() => ofPods.data.filter((pod) => asked === undefined || isOf(pod, asked)).map(podRow).sort((a, b) => a.created - b.created || a.name.localeCompare(b.name)), [ofPods.data, asked]);

  const uid = asked ?? life.transitions[0]?.uid;
  // A pod's end changes what is known of its job, whatever the job's own state.
  const ended = podRows.filter(({ phase }) => phase === 'Succeeded' || phase === 'Failed').length;
  const readPast = usePastJob(jobs, namespace, name, uid, uid && `${life.transitions.at(-1)?.seq} ${ended} ${podRows.length}`);
  const kept = readPast.data;
  // What the object says may be taken back by the history.
  const coming = kept === undefined && ((past.status === 'loading' && !past.error) || (readPast.at === undefined && !readPast.error));
  const states = useMemo(() => withCause(life, kept), [life, kept]);
  const about = useMemo(
    () => ofJob(said.data, name, uid ?? job?.metadata.uid, [...podRows, ...(kept?.pods ?? [])].map((pod) => pod.uid)),
    [said.data, name, uid, job, podRows, kept],
  );
  // Until it is known whether the name is another run's by now, the page shows none in particular.
  useShows(asked ?? (watched.status === 'live' ? (job?.metadata.uid ?? uid) : undefined));
  const others = useOtherRuns(namespace, name, uid, `${named?.metadata.uid} ${life.transitions.length}`);
  const compares = view.tab === 'compare' || others.items.length > 0;
  const state = row?.state ?? (kept && outcomeOf(kept));
  const { tabs } = t;
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      table={{ href: linkTo('jobs', view), title: t.jobs }}
      mark={row ? <StateMark {...inWords(row)} {...(row.state === 'Failed' && (coming ? { detail: '' } : kept?.cause?.reason && { detail: causeName(kept.cause.reason) }))} /> : kept && <PastMark past={kept} />}
      standing={state ? { state, cause: state === 'Failed' ? (kept?.cause?.reason ?? '') : '' } : undefined}
      command={job || (asked === undefined && watched.status === 'loading') ? 'describe job' : undefined}
      watched={watched}
      there={job !== undefined}
      known={past.status !== 'denied' || kept !== undefined || podRows.length > 0}
      missing={life.transitions.length === 0 && !kept ? t.noJob : other ? t.otherHasName : t.gone}
      facts={
        <>
          {kept && <Why past={kept} limit={<MemoryLimit past={kept} job={job} />} tooLarge={<TooLarge past={kept} job={job} />} view={view} there={(pod) => podRows.some((one) => one.name === pod)} />}
          <JobPlace past={kept} view={view} />
          <WaitedLately past={kept} />
          {(row ?? kept) && (
            <Facts
              facts={[
                (row ?? kept?.progress) && [
                  t.progress,
                  <>
                    {row ? <Progress {...row} /> : kept?.progress && <Progress succeeded={kept.progress.done} completions={kept.progress.of} />}
                    {row && row.failed > 0 && typeof kept?.podFailures !== 'number' && <span className="job-failed"> {t.failed(row.failed)}</span>}
                  </>,
                ],
                [t.owner, <span key="owner" translate="no">{kept?.owner || row?.owner || '–'}</span>],
                Boolean(kept?.queue || row?.queue) && [t.queue, <span key="queue" translate="no">{kept?.queue || row?.queue}</span>],
                [t.created, <Age key="created" since={row?.created ?? kept?.createdAt} in={t.ago} />],
                ...times(kept, row, coming),
                ...pastFacts(kept, view),
              ]}
            />
          )}
          {row?.message && !states.transitions.some(({ message }) => message === row.message) && (
            <p className="job-said" translate="no">
              {row.message}
            </p>
          )}
          {(uid ?? job?.metadata.uid) !== undefined && <OwnerTree namespace={namespace} name={name} uid={uid ?? job?.metadata.uid ?? ''} job={job} past={kept} pods={podRows} view={view} />}
          <Parts past={kept} signal={states.transitions.at(-1)?.seq} view={view} />
          <h2>{t.happened}</h2>
          <Timeline life={states} status={past.status} message={past.error?.message} told={kept} />
          {uid !== undefined && <Runs runs={others} uid={uid} view={view} />}
        </>
      }
      tabs={[
        {
          id: 'logs',
          title: tabs.logs,
          content: () => {
            // By its name it is the log of whichever run has that.
            const byPod = asked !== undefined && !job;
            if (ofPods.status === 'loading' || (byPod && watched.status === 'loading')) return <p className="job-none">{t.loading}</p>;
            const it = uid === undefined ? undefined : { of: jobs, namespace, name, uid };
            const lost = lostPods(kept, podRows);
            if (podRows.length === 0 && it && (kept?.log || lost.length > 0)) return <PastLogs key={it.uid} {...it} own={kept?.log === true} pods={lost} />;
            if (byPod && podRows.length === 0) return <div className="job-none">{past.status === 'loading' ? t.loading : isFinal(ofPods) ? t.pods.denied : <WhyUnwritten of={unwrittenOf(kept, false)} />}</div>;
            const unwritten = watched.status === 'live' && (job !== undefined || past.status === 'live') ? unwrittenOf(kept, job !== undefined) : undefined;
            const now = <LogView namespace={namespace} name={name} pods={podRows} byPod={byPod} token={token} unwritten={unwritten} />;
            return it && lost.length > 0 ? <KeptLogs key={it.uid} {...it} first={{ title: t.kept.now, content: now }} pods={lost} /> : now;
          },
        },
        {
          id: 'pods',
          title: tabs.pods,
          // None so far is not none.
          count: Math.max(podRows.length, kept?.podCount ?? 0) || (ofPods.status === 'loading' || past.status === 'loading' ? undefined : 0),
          content: () => {
            const now = { rows: podRows, status: ofPods.status, message: ofPods.error?.message, view };
            return kept ? <PodsEver key={kept.uid} of={jobs} past={kept} {...now} /> : <PodsNow {...now} />;
          },
        },
        { id: 'conditions', title: tabs.conditions, content: () => <Conditions object={job} status={watched.status} /> },
        { id: 'events', title: tabs.events, content: () => <Events all={about} kind="Job" self={t.events.theJob} status={said.status} message={said.error?.message} /> },
        ...(kept && compares ? [{ id: 'compare', title: tabs.compare, content: () => <Waiting><Compare here={kept} others={others.items} named={named} view={view} /></Waiting> }] : []),
        { id: 'yaml', title: tabs.yaml, content: () => (!job && watched.status === 'live' && uid !== undefined && kept?.spec ? <KeptSpec key={uid} of={jobs} namespace={namespace} name={name} uid={uid} /> : <Yaml object={job} status={watched.status} of={jobs} />) },
      ]}
    />
  );
}

/** As the history says; without one, and where that is away, what the object says of itself. */
function times(kept: PastJob | undefined, row: JobRow | undefined, coming: boolean): readonly (readonly [string, ReactNode])[] {
  if (coming) return [[t.runTime, <NotYet key="ran" />]];
  const { waited, ran } = row ? timesOf(row, kept) : (kept ?? { waited: undefined, ran: undefined });
  return [...(kept ? [[t.waited, <span key="waited" title={t.waitedSince}><Lasted of={waited} /></span>] as const] : []), [t.runTime, <Lasted key="ran" of={ran} why least={(!row || kept?.uid === row.uid) && ranLonger(kept)} />]];
}

/** Whether a pod is that run's: another one may have its name. One that was left behind has no owner any more, but still the label. */
const isOf = ({ metadata: { ownerReferences = [], labels } }: Pod, uid: string): boolean =>
  ownerReferences.some((owner) => owner.uid === uid) || (!ownerReferences.some(({ controller }) => controller) && labels?.['batch.kubernetes.io/controller-uid'] === uid);

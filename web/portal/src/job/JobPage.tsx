// One job: how it stands and came to it, what its pods write, and what the cluster says about it.

import { transitions } from '@kubecast/sdk';
import { useFollow, useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { jobRow } from '../jobs/job.ts';
import { Progress } from '../jobs/Progress.tsx';
import { Owners } from '../object/CommonFacts.tsx';
import { Conditions } from '../object/Conditions.tsx';
import { Facts, ObjectFrame } from '../object/ObjectFrame.tsx';
import { podFields, podRow } from '../pods/pod.ts';
import { JobPlace } from '../queues/JobPlace.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { linkTo, type View } from '../view/view.ts';
import { Events, eventFields, ofJob } from './Events.tsx';
import { KeptLog, KeptSpec, usePastJob } from './Kept.tsx';
import { LogView } from './LogView.tsx';
import { Parts, pastFacts, PastMark, Why } from './PastFacts.tsx';
import { PodsEver, PodsNow } from './Pods.tsx';
import { Timeline } from './Timeline.tsx';
import { latestLife, withCause } from './life.ts';
import { events, jobs, pods } from './resources.ts';
import { Yaml } from './Yaml.tsx';
import { t } from './texts.ts';

interface JobPageProps {
  readonly view: View;
  readonly namespace: string;
  readonly name: string;
  /** What a request has to carry beside cookies. */
  readonly token: string | undefined;
}

export function JobPage({ view, namespace, name, token }: JobPageProps): ReactNode {
  const watched = useWatch(jobs, { namespace, name });
  const past = useFollow(transitions(jobs, { namespace, name, limit: 500 }));
  const ofPods = useWatch(pods, { namespace, labels: `batch.kubernetes.io/job-name=${name}`, fields: podFields });
  const said = useWatch(events, { namespace, search: name, fields: eventFields });

  const job = watched.data[0];
  const row = useMemo(() => job && jobRow(job), [job]);
  const life = useMemo(() => latestLife(past.data, job?.metadata.uid), [past.data, job]);
  const podRows = useMemo(() => ofPods.data.map(podRow).sort((a, b) => a.created - b.created || a.name.localeCompare(b.name)), [ofPods.data]);

  const uid = life.transitions[0]?.uid;
  // A pod's end changes what is known of its job, whatever the job's own state.
  const ends = podRows.filter(({ state }) => state === 'Succeeded' || state === 'Failed').length;
  const kept = usePastJob(jobs, namespace, name, uid, uid && `${life.transitions.at(-1)?.seq} ${ends} ${podRows.length}`);
  const states = useMemo(() => withCause(life, kept), [life, kept]);
  const about = useMemo(() => ofJob(said.data, name), [said.data, name]);
  const { tabs } = t;
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      back={{ href: linkTo('jobs', view), title: t.jobs }}
      mark={row ? <StateMark {...row} detail={row.state === 'Failed' ? (kept?.cause?.reason ?? row.detail) : row.detail} /> : kept && <PastMark past={kept} />}
      command="describe job"
      watched={watched}
      there={job !== undefined}
      missing={life.transitions.length > 0 ? t.gone : t.noJob}
      facts={
        <>
          {kept && <Why past={kept} view={view} there={(pod) => podRows.some((one) => one.name === pod)} />}
          <JobPlace past={kept} />
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
                job && (job.metadata.ownerReferences?.length ?? 0) > 0 && [t.ownedBy, <Owners key="owners" object={job} view={view} />],
                [t.created, <Age key="created" since={row?.created ?? kept?.createdAt} in={t.ago} />],
                [t.runTime, <Age key="ran" since={row?.started ?? kept?.startedAt} until={row ? row.finished : (kept?.endedAt ?? kept?.deletedAt)} />],
                ...pastFacts(kept, view),
              ]}
            />
          )}
          {row?.message && !states.transitions.some(({ message }) => message === row.message) && (
            <p className="job-said" translate="no">
              {row.message}
            </p>
          )}
          <Parts past={kept} signal={states.transitions.at(-1)?.seq} view={view} />
          <h2>{t.happened}</h2>
          <Timeline life={states} status={past.status} message={past.error?.message} />
        </>
      }
      tabs={[
        {
          id: 'logs',
          title: tabs.logs,
          content: () => {
            if (ofPods.status === 'loading') return <p className="job-none">{t.loading}</p>;
            if (podRows.length === 0 && uid !== undefined && kept?.log) return <KeptLog key={uid} of={jobs} namespace={namespace} name={name} uid={uid} />;
            return <LogView namespace={namespace} name={name} pods={podRows} token={token} />;
          },
        },
        {
          id: 'pods',
          title: tabs.pods,
          count: Math.max(podRows.length, kept?.podCount ?? 0),
          content: () => {
            const now = { rows: podRows, status: ofPods.status, message: ofPods.error?.message, view };
            return kept ? <PodsEver key={kept.uid} of={jobs} past={kept} {...now} /> : <PodsNow {...now} />;
          },
        },
        { id: 'conditions', title: tabs.conditions, content: () => <Conditions object={job} status={watched.status} /> },
        { id: 'events', title: tabs.events, content: () => <Events all={about} kind="Job" self={t.events.theJob} status={said.status} message={said.error?.message} /> },
        { id: 'yaml', title: tabs.yaml, content: () => (!job && watched.status === 'live' && uid !== undefined && kept?.spec ? <KeptSpec key={uid} of={jobs} namespace={namespace} name={name} uid={uid} /> : <Yaml object={job} status={watched.status} />) },
      ]}
    />
  );
}

// One job: how it stands and came to it, what its pods write, and what the cluster says about it.

import { transitions, type WatchStatus } from '@kubecast/sdk';
import { useFollow, useWatch } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age, AsOf } from '../age/Age.tsx';
import { formatTime } from '../texts/format.ts';
import { jobRow } from '../jobs/job.ts';
import { Progress } from '../jobs/Progress.tsx';
import { podFields, podRow } from '../pods/pod.ts';
import { StateMark } from '../state/StateMark.tsx';
import { linkTo, setView, type View } from '../view/view.ts';
import { Copied } from './Copied.tsx';
import { Events, eventFields } from './Events.tsx';
import { LogView } from './LogView.tsx';
import { Pods } from './Pods.tsx';
import { Timeline } from './Timeline.tsx';
import { latestLife } from './life.ts';
import { events, jobs, pods } from './resources.ts';
import { Yaml } from './Yaml.tsx';
import { t } from './texts.ts';
import './job.css';

const tabs = ['logs', 'pods', 'events', 'yaml'] as const;

/** What can be a name. Anything else comes from a link that somebody made up, and a shell might take it for more than a name. */
const nameable = /^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$/;

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
  const ofJob = useWatch(pods, { namespace, labels: `batch.kubernetes.io/job-name=${name}`, fields: podFields });
  const said = useWatch(events, { namespace, search: name, fields: eventFields });

  const job = watched.data[0];
  const row = useMemo(() => job && jobRow(job), [job]);
  const life = useMemo(() => latestLife(past.data, job?.metadata.uid), [past.data, job]);
  const podRows = useMemo(() => ofJob.data.map(podRow).sort((a, b) => a.created - b.created || a.name.localeCompare(b.name)), [ofJob.data]);

  const tab = tabs.find((one) => one === view.tab) ?? 'logs';
  const counts: Partial<Record<(typeof tabs)[number], number>> = { pods: podRows.length };
  return (
    <div className="job">
      <header className="job-head">
        <a className="job-back" href={linkTo('jobs', view)}>
          {t.back}
        </a>
        <h1 translate="no">{name}</h1>
        <span className="job-namespace" translate="no">{namespace}</span>
        {row && <StateMark {...row} />}
        {nameable.test(namespace) && nameable.test(name) && <Copied text={`kubectl -n ${namespace} describe job ${name}`} />}
      </header>
      <Trouble status={watched.status} message={watched.error?.message} asOf={watched.asOf} there={job !== undefined} past={life.transitions.length > 0} />
      <AsOf value={watched.status === 'live' ? undefined : watched.asOf}>
        <div className="job-body" data-dated={watched.status === 'stale' || watched.status === 'reconnecting' || undefined}>
          <section className="job-facts" aria-label={t.facts}>
            {row && (
              <dl>
                <dt>{t.progress}</dt>
                <dd>
                  <Progress {...row} />
                  {row.failed > 0 && <span className="job-failed"> {t.failed(row.failed)}</span>}
                </dd>
                <dt>{t.owner}</dt>
                <dd translate="no">{row.owner || '–'}</dd>
                {row.queue && (
                  <>
                    <dt>{t.queue}</dt>
                    <dd translate="no">{row.queue}</dd>
                  </>
                )}
                <dt>{t.created}</dt>
                <dd>
                  <Age since={row.created} in={t.ago} />
                </dd>
                <dt>{t.runTime}</dt>
                <dd>
                  <Age since={row.started} until={row.finished} />
                </dd>
              </dl>
            )}
            {row?.message && <p className="job-said" translate="no">{row.message}</p>}
            <h2>{t.happened}</h2>
            <Timeline life={life} status={past.status} message={past.error?.message} />
          </section>
          <section className="job-main" aria-label={t.details}>
            <nav className="tabs" aria-label={t.details}>
              {tabs.map((one) => (
                <button key={one} type="button" aria-current={one === tab ? 'true' : undefined} onClick={() => setView({ tab: one === 'logs' ? '' : one })}>
                  {t.tabs[one]} {counts[one] !== undefined && <span className="chip-count">{counts[one]}</span>}
                </button>
              ))}
            </nav>
            {tab === 'logs' && ofJob.status === 'loading' && <p className="job-none">{t.loading}</p>}
            {tab === 'logs' && ofJob.status !== 'loading' && <LogView namespace={namespace} name={name} pods={podRows} token={token} />}
            {tab === 'pods' && <Pods rows={podRows} status={ofJob.status} message={ofJob.error?.message} />}
            {tab === 'events' && <Events all={said.data} job={name} status={said.status} message={said.error?.message} />}
            {tab === 'yaml' && <Yaml object={job} status={watched.status} />}
          </section>
        </div>
      </AsOf>
    </div>
  );
}

interface TroubleProps {
  readonly status: WatchStatus;
  readonly message: string | undefined;
  readonly asOf: number | undefined;
  readonly there: boolean;
  /** Its history is known. */
  readonly past: boolean;
}

/** Why what is shown is not the job as it is now; nothing if it is. */
function Trouble({ status, message, asOf, there, past }: TroubleProps): ReactNode {
  let text: string | undefined;
  if (status === 'denied' || status === 'closed') text = `${t.cannotBeShown} ${message ?? ''}`;
  else if (status === 'stale' || ((status === 'reconnecting' || status === 'paused') && there)) {
    text = asOf === undefined ? t.old : (status === 'stale' ? t.clusterLost : t.connectionLost)(formatTime(asOf));
  } else if (status === 'live' && !there) text = past ? t.gone : t.noJob;
  if (text === undefined) return null;
  return (
    <p className="job-trouble" role="status">
      {text}
    </p>
  );
}

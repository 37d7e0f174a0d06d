// One queue: its quotas, who waits in it in which order, and who has what of it. Of strangers only that they are there.

import type { HiddenJob, QueueWithJobs, WaitingJob } from '@kubecast/sdk';
import { useQueue, useQueues } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { formatAmount, quantity } from '../object/requests.ts';
import { Facts, ObjectFrame } from '../object/ObjectFrame.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { formatNumber } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { linkTo, linkToObject, linkToQueue, type View } from '../view/view.ts';
import { Quotas } from './Quota.tsx';
import { sharesOf, usesOf } from './quota.ts';
import { Starts } from './Starts.tsx';
import { t } from './texts.ts';
import '../listing/listing.css';
import './queues.css';

interface QueuePageProps {
  readonly view: View;
  readonly namespace: string;
  readonly name: string;
}

export function QueuePage({ view, namespace, name }: QueuePageProps): ReactNode {
  const watched = useQueue(namespace, name);
  const queue = watched.data;
  return (
    <ObjectFrame
      view={view}
      namespace={namespace}
      name={name}
      table={{ href: linkTo('queues', view), title: t.title }}
      mark={queue?.stopped && <StateMark state="Suspended" detail={t.stopped} message="" />}
      command={namespace !== '' ? 'describe localqueue' : queue?.kind === 'Queue' ? 'describe queues.scheduling.volcano.sh' : 'describe clusterqueue'}
      watched={watched}
      there={queue !== undefined}
      missing={t.missing}
      facts={
        queue && (
          <>
            <Facts
              facts={[
                queue.clusterQueue !== '' && [
                  t.facts.part,
                  <a key="part" href={linkToQueue('', queue.clusterQueue, view)} translate="no">
                    {queue.clusterQueue}
                  </a>,
                ],
                queue.cohort !== '' && [t.facts.cohort, <span key="cohort" translate="no">{queue.cohort}</span>],
                [t.facts.waiting, formatNumber(queue.waiting)],
                [t.facts.running, formatNumber(queue.running)],
              ]}
            />
            <h2>{t.quotas}</h2>
            <Quotas uses={usesOf(queue)} />
          </>
        )
      }
      tabs={[
        { id: 'waiting', title: t.tabs.waiting, count: queue?.waiting, content: () => (queue ? <Line queue={queue} view={view} /> : <p className="job-none">{t.loading}</p>) },
        { id: 'teams', title: t.tabs.teams, content: () => (queue ? <Teams clusterQueue={namespace === '' ? name : queue.clusterQueue} /> : <p className="job-none">{t.loading}</p>) },
      ]}
    />
  );
}

type Strangers = { readonly hidden: true; readonly from: number | null; readonly to: number | null; readonly count: number };

/** Strangers in a row are one line. */
export function linesOf(jobs: readonly (WaitingJob | HiddenJob)[]): readonly (WaitingJob | Strangers)[] {
  const lines: (WaitingJob | Strangers)[] = [];
  for (const job of jobs) {
    const last = lines.at(-1);
    if (!job.hidden) lines.push(job);
    else if (last?.hidden) lines[lines.length - 1] = { ...last, to: job.position, count: last.count + 1 };
    else lines.push({ hidden: true, from: job.position, to: job.position, count: 1 });
  }
  return lines;
}

const placed = (place: number | null): string => (place === null ? '–' : formatNumber(place));

function Line({ queue, view }: { readonly queue: QueueWithJobs; readonly view: View }): ReactNode {
  const { namespace, jobs, waiting } = queue;
  const lines = useMemo(() => linesOf(jobs), [jobs]);
  const isLocal = namespace !== '';
  const told = jobs.some((job) => !job.hidden && job.starts);
  if (jobs.length === 0) return <p className="job-none">{t.nobody}</p>;
  const headers = [t.line.job, t.line.owner, t.line.since, t.line.requests, ...(told ? [t.line.starts] : [])];
  return (
    <div className="job-scroller" tabIndex={0} role="region" aria-label={t.tabs.waiting}>
      <table className="plain-table" aria-label={t.tabs.waiting}>
        <thead>
          <tr>
            <th scope="col" data-numeric>
              {t.line.place}
            </th>
            {isLocal && (
              <th scope="col" data-numeric>
                {t.line.whole}
              </th>
            )}
            {headers.map((header) => (
              <th key={header} scope="col">
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {lines.map((line) =>
            line.hidden ? (
              <tr key={`others ${line.from}`} data-hidden={line.count}>
                <td data-numeric>{line.from === line.to ? placed(line.from) : `${placed(line.from)}–${placed(line.to)}`}</td>
                <td colSpan={headers.length + (isLocal ? 1 : 0)} className="none">
                  {t.others(line.count)}
                </td>
              </tr>
            ) : (
              <tr key={line.uid} data-name={line.name}>
                <td data-numeric>{placed(isLocal ? line.position : line.clusterPosition)}</td>
                {isLocal && <td data-numeric>{placed(line.clusterPosition)}</td>}
                <td>
                  <a className="row-link" href={linkToObject(line.resource, line.namespace, line.name, view)} translate="no">
                    {line.name}
                  </a>
                  {!isLocal && (
                    <span className="state-detail" translate="no">
                      {' '}
                      {line.namespace}
                    </span>
                  )}
                </td>
                <td translate="no">{line.owner || '–'}</td>
                <td>
                  <Age since={line.since} />
                </td>
                <td translate="no">{wants(line.requests)}</td>
                {told && <td>{line.starts ? <Starts at={line.starts} /> : '–'}</td>}
              </tr>
            ),
          )}
        </tbody>
      </table>
      {waiting > jobs.length && <p className="job-none">{t.more(waiting - jobs.length)}</p>}
    </div>
  );
}

const wants = (requests: Readonly<Record<string, string>>): string =>
  Object.entries(requests)
    .map(([name, amount]) => `${formatAmount(name, quantity(amount))} ${name.replace(/^.*\//, '')}`)
    .join(marks.list) || '–';

function Teams({ clusterQueue }: { readonly clusterQueue: string }): ReactNode {
  const { data, status } = useQueues();
  const { of, teams } = useMemo(() => sharesOf(clusterQueue, data), [clusterQueue, data]);
  if (teams.length === 0) return <p className="job-none">{status === 'loading' ? t.loading : t.nothingUsed}</p>;
  const most = of.map((_, n) => Math.max(...teams.map(({ used }) => used[n] ?? 0), Number.MIN_VALUE));
  return (
    <div className="job-scroller" tabIndex={0} role="region" aria-label={t.tabs.teams}>
      <table className="plain-table" aria-label={t.tabs.teams}>
        <thead>
          <tr>
            <th scope="col">{t.team}</th>
            {of.map(({ flavor, resource }) => (
              <th key={`${flavor}/${resource}`} scope="col" translate="no">
                {[flavor, resource].filter(Boolean).join(' · ')}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {teams.map(({ team, used }) => (
            <tr key={team} data-team={team}>
              <th scope="row" className="team-name">
                {team === '' ? <span className="none">{t.rest}</span> : <span translate="no">{team}</span>}
              </th>
              {used.map((amount, n) => (
                <td key={`${of[n]?.flavor}/${of[n]?.resource}`}>
                  <span className="share">
                    <svg className="quota-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
                      <rect className="quota-own" width={(100 * amount) / (most[n] ?? 1)} height="8" />
                    </svg>
                    {formatAmount(of[n]?.resource ?? '', amount)}
                  </span>
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {teams.some(({ team }) => team === '') && <p className="job-none">{t.restHint}</p>}
    </div>
  );
}

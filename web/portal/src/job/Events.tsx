import type { KubeObject, WatchStatus } from '@kubecast/sdk';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { timeOf } from '../jobs/job.ts';
import { Listing } from './Listing.tsx';
import { formatNumber } from '../texts/format.ts';
import { t } from './texts.ts';

/** A v1 Event. */
export interface ClusterEvent extends KubeObject {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string };
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string } | null;
}

export const eventFields = ['involvedObject.kind', 'involvedObject.name', 'type', 'reason', 'message', 'count', 'lastTimestamp', 'eventTime', 'series', 'metadata.creationTimestamp'];

interface EventsProps {
  /** Of all that has the job's name in its own. */
  readonly all: readonly ClusterEvent[];
  readonly job: string;
  readonly status: WatchStatus;
  readonly message: string | undefined;
}

/** What the cluster says of the job and of its pods, the newest first. A cluster keeps this for an hour, usually. */
export function Events({ all, job, status, message }: EventsProps): ReactNode {
  const rows = useMemo(() => eventsOf(all, job), [all, job]);
  return (
    <Listing status={status} message={message} {...t.events}>
      {rows.map(({ uid, at, type, reason, about, text, count }) => (
        <tr key={uid} data-type={type} translate="no">
          <td>
            <Age since={at} />
            {count > 1 && <span className="state-detail"> ×{formatNumber(count)}</span>}
          </td>
          <td className={type === 'Normal' ? undefined : 'job-warning'}>{reason}</td>
          <td>{about}</td>
          <td className="job-message">{text}</td>
        </tr>
      ))}
    </Listing>
  );
}

export interface EventRow {
  readonly uid: string;
  readonly at: number | undefined;
  readonly type: string;
  readonly reason: string;
  readonly about: string;
  readonly text: string;
  readonly count: number;
}

/** Those of a job and of its pods, which have the job's name before their own. */
export function eventsOf(all: readonly ClusterEvent[], job: string): EventRow[] {
  const of = ({ involvedObject: { kind = '', name = '' } = {} }: ClusterEvent): boolean =>
    (kind === 'Job' && name === job) || (kind === 'Pod' && name.startsWith(`${job}-`));
  return all
    .filter(of)
    .map((event) => ({
      uid: event.metadata.uid,
      at: timeOf(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp),
      type: event.type ?? '',
      reason: event.reason ?? '',
      about: event.involvedObject?.kind === 'Job' ? t.events.theJob : (event.involvedObject?.name ?? ''),
      text: event.message ?? '',
      count: event.series?.count ?? event.count ?? 1,
    }))
    .sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
}

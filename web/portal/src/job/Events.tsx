import type { KubeObject, WatchStatus } from '@kubecast/sdk';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { timeOf } from '../jobs/job.ts';
import { formatNumber } from '../texts/format.ts';
import { Listing } from './Listing.tsx';
import { t } from './texts.ts';

/** A v1 Event. */
export interface ClusterEvent extends KubeObject {
  readonly involvedObject?: { readonly kind?: string; readonly name?: string; readonly uid?: string };
  readonly type?: string;
  readonly reason?: string;
  readonly message?: string;
  readonly count?: number;
  readonly lastTimestamp?: string | null;
  readonly eventTime?: string | null;
  readonly series?: { readonly count?: number; readonly lastObservedTime?: string } | null;
}

export const eventFields = ['involvedObject.kind', 'involvedObject.name', 'involvedObject.uid', 'type', 'reason', 'message', 'count', 'lastTimestamp', 'eventTime', 'series', 'metadata.creationTimestamp'];

interface EventsProps {
  /** Those of what the page shows. */
  readonly all: readonly ClusterEvent[];
  /** What the page shows itself: of it, it is not said which one. */
  readonly kind: string;
  readonly self: string;
  readonly status: WatchStatus;
  readonly message: string | undefined;
}

/** What the cluster says of it, the newest first. A cluster keeps this for an hour, usually. */
export function Events({ all, kind, self, status, message }: EventsProps): ReactNode {
  const rows = useMemo(() => eventRows(all, kind, self), [all, kind, self]);
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
export function ofJob(all: readonly ClusterEvent[], job: string): ClusterEvent[] {
  return all.filter(({ involvedObject: { kind = '', name = '' } = {} }) => (kind === 'Job' && name === job) || (kind === 'Pod' && name.startsWith(`${job}-`)));
}

/** Those of one run of a name, by the uids of the job and its pods. */
export const ofRun = (all: readonly ClusterEvent[], uids: ReadonlySet<string>): ClusterEvent[] => all.filter(({ involvedObject: { uid = '' } = {} }) => uids.has(uid));

export function eventRows(all: readonly ClusterEvent[], kind: string, self: string): EventRow[] {
  return all
    .map((event) => ({
      uid: event.metadata.uid,
      at: timeOf(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp),
      type: event.type ?? '',
      reason: event.reason ?? '',
      about: event.involvedObject?.kind === kind ? self : (event.involvedObject?.name ?? ''),
      text: event.message ?? '',
      count: event.series?.count ?? event.count ?? 1,
    }))
    .sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
}

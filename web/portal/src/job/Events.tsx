import type { KubeObject, Status } from '@kubecast/sdk';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { timeOf } from '../jobs/job.ts';
import { wordOf } from '../state/said.ts';
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
  readonly status: Status;
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
          <td className={type === 'Normal' ? undefined : 'job-warning'}>{wordOf(reason)}</td>
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

/**
 * Those of a job and of its pods, by their uids: a name says nothing, since `train-2` is another job than `train`, and a name is used again. The names of pods that
 * are gone, of which nothing else is known, are told by the job's own Events. Without a uid it is the job of this name that was spoken of last.
 */
export function ofJob(all: readonly ClusterEvent[], name: string, uid: string | undefined, pods: Iterable<string>): ClusterEvent[] {
  const about = (event: ClusterEvent): NonNullable<ClusterEvent['involvedObject']> => event.involvedObject ?? {};
  const job = uid ?? [...all].filter((event) => about(event).kind === 'Job' && about(event).name === name).sort((a, b) => (whenOf(a) ?? 0) - (whenOf(b) ?? 0)).map((event) => about(event).uid).at(-1);
  const uids = new Set([...(job ? [job] : []), ...pods]);
  const made = new Set(all.flatMap(({ involvedObject, reason, message = '' }) => (job && involvedObject?.uid === job && reason === 'SuccessfulCreate' ? [/^Created pod: (\S+)$/.exec(message)?.[1]] : [])));
  return all.filter((event) => uids.has(about(event).uid ?? '') || (about(event).kind === 'Pod' && made.has(about(event).name ?? '')));
}

/** Events are named after what they are about, whose name may be cut to this, before what makes it unique. */
export const eventsName = (name: string): string => name.slice(0, 50);

const whenOf = (event: ClusterEvent): number | undefined => timeOf(event.series?.lastObservedTime ?? event.lastTimestamp ?? event.eventTime ?? event.metadata.creationTimestamp);

export function eventRows(all: readonly ClusterEvent[], kind: string, self: string): EventRow[] {
  return all
    .map((event) => ({
      uid: event.metadata.uid,
      at: whenOf(event),
      type: event.type ?? '',
      reason: event.reason ?? '',
      about: event.involvedObject?.kind === kind ? self : (event.involvedObject?.name ?? ''),
      text: event.message ?? '',
      count: event.series?.count ?? event.count ?? 1,
    }))
    .sort((a, b) => (b.at ?? 0) - (a.at ?? 0));
}

// Where one job waits, as its queue tells it, and until that is there as the history has it.

import { isFinal, type PastJob, type QueuePlace } from '@kubecast/sdk';
import { useQueue } from '@kubecast/sdk/react';
import type { ReactNode } from 'react';
import { useHasQueues } from '../pages/shown.ts';
import { linkToQueue, type View } from '../view/view.ts';
import { placeOf, Starts } from './Starts.tsx';
import { t } from './texts.ts';

/** Nothing of a job that does not wait, or where there are no queues. */
export function JobPlace({ past, view }: { readonly past: PastJob | undefined; readonly view: View }): ReactNode {
  const there = useHasQueues();
  if (past?.state !== 'Queued' || past.queue === '') return null;
  return there ? <Followed past={past} view={view} /> : past.place ? <Told place={past.place} /> : null;
}

function Followed({ past: { uid, namespace, queue, place }, view }: { readonly past: PastJob; readonly view: View }): ReactNode {
  const { data, status } = useQueue(namespace, queue);
  const own = isFinal({ status }) ? undefined : data?.jobs.find((job) => !job.hidden && job.uid === uid);
  const told: QueuePlace | undefined = own && !own.hidden ? { ...own, starts: own.starts ?? place?.starts } : place;
  return told ? <Told place={told} link={data && linkToQueue(namespace, queue, view)} /> : null;
}

function Told({ place, link }: { readonly place: QueuePlace; /** To the queue, if it is there. */ readonly link?: string | undefined }): ReactNode {
  const where = placeOf(place);
  if (where === '' && !place.starts) return null;
  return (
    <dl className="job-place">
      {where !== '' && (
        <div className="fact">
          <dt>{t.place}</dt>
          <dd>{link ? <a href={link}>{where}</a> : where}</dd>
        </div>
      )}
      {place.starts && (
        <div className="fact">
          <dt>{t.starts}</dt>
          <dd>
            <Starts at={place.starts} />
          </dd>
        </div>
      )}
    </dl>
  );
}

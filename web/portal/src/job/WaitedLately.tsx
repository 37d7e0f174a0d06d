// How long jobs like one that waits have waited lately, where no queue says when it starts.

import { pastUsage, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { useReading } from '../polling/polling.ts';
import { formatDuration } from '../texts/format.ts';
import { jobs } from './resources.ts';
import { t } from './texts.ts';

/** Of fewer jobs nothing is said, and of fewer waits not how long they were. */
const fewest = 5;
const waiting = new Set(['Submitted', 'Queued', 'Pending']);

/** Nothing of a job that does not wait, or that is in a queue: see JobPlace. */
export function WaitedLately({ past }: { readonly past: PastJob | undefined }): ReactNode {
  if (!past || !waiting.has(past.state) || past.queue !== '') return null;
  return <Lately namespace={past.namespace} />;
}

function Lately({ namespace }: { readonly namespace: string }): ReactNode {
  const kc = useKubecast();
  const read = useMemo(() => () => pastUsage(kc, jobs, { namespace, by: 'namespace', since: '168h' }), [kc, namespace]);
  const { data } = useReading(read, undefined);
  const [usage] = data ?? [];
  if (!usage || usage.jobs < fewest) return null;
  const { jobs: all, waitedSeconds } = usage;
  const count = waitedSeconds?.count ?? 0;
  return (
    <dl className="job-place">
      <div className="fact">
        <dt>{t.lately}</dt>
        <dd>{waitedSeconds && count >= fewest ? t.waitedLately(formatDuration(waitedSeconds.p50 * 1_000), formatDuration(waitedSeconds.p90 * 1_000), count, all) : t.waitedUnknown(count, all)}</dd>
      </div>
    </dl>
  );
}

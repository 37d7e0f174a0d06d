// The other jobs that have, or had, the name: each a page of its own.

import { pastJobs, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { outcomeOf } from '../history/outcome.ts';
import { useReading } from '../polling/polling.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { stateName } from '../state/texts.ts';
import { whyNow } from '../state/why.ts';
import { formatWhen } from '../texts/when.ts';
import { formatView, linkToRun, parseView, type View } from '../view/view.ts';
import { jobs } from './resources.ts';
import { t } from './texts.ts';

/** So many of the newest are listed. */
const most = 20;

export interface OtherRuns {
  /** The newest first. */
  readonly items: readonly PastJob[];
  readonly more: boolean;
}

/** The others that have, or had, the name of the run with this uid; read again with each other `signal`, which says that they may have changed. */
export function useOtherRuns(namespace: string, name: string, uid: string | undefined, signal: unknown): OtherRuns {
  const kc = useKubecast();
  const known = uid !== undefined;
  const read = useMemo(() => () => (known ? pastJobs(kc, jobs, { namespace, name, limit: most }) : Promise.resolve(undefined)), [kc, namespace, name, known]);
  const { data } = useReading(read, signal, 1_500);
  return useMemo(() => ({ items: (data?.items ?? []).filter((job) => job.uid !== uid), more: data?.more ?? false }), [data, uid]);
}

interface RunsProps {
  readonly runs: OtherRuns;
  /** The one that the page shows. */
  readonly uid: string;
  readonly view: View;
}

export function Runs({ runs: { items: others, more }, uid, view }: RunsProps): ReactNode {
  if (others.length === 0) return null;
  return (
    <section aria-label={t.runs}>
      <h2>{t.runs}</h2>
      <ul className="job-parts job-runs">
        {others.map((job) => {
          const state = outcomeOf(job);
          const why = whyNow(job);
          return (
            <li key={job.uid} data-uid={job.uid} data-state={state}>
              <StateIcon state={state} />
              <div>
                <a href={linkToRun(job, view)}>
                  {stateName(state)}, <Age since={job.createdAt} in={t.ago} />
                </a>{' '}
                <a className="job-compare" href={linkToComparison(job, uid, view)} aria-label={t.compareWith(formatWhen(job.createdAt))}>
                  {t.compare}
                </a>
                {why && <div className="state-detail" translate="no">{why}</div>}
              </div>
            </li>
          );
        })}
      </ul>
      {more && <p className="none">{t.runsMore}</p>}
    </section>
  );
}

/** A run's page beside another run of its name. */
const linkToComparison = (other: PastJob, uid: string, view: View): string => formatView({ ...parseView(linkToRun({ ...other, uid }, view)), tab: 'compare', compare: other.uid });

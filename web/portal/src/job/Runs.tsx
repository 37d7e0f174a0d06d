// The other jobs that have, or had, the name: each a page of its own.

import { pastJobs } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { outcomeOf } from '../history/outcome.ts';
import { useReading } from '../polling/polling.ts';
import { StateIcon } from '../state/StateMark.tsx';
import { stateName } from '../state/texts.ts';
import { whyNow } from '../state/why.ts';
import { linkToRun, type View } from '../view/view.ts';
import { jobs } from './resources.ts';
import { t } from './texts.ts';

/** So many of the newest are listed. */
const most = 20;

interface RunsProps {
  readonly namespace: string;
  readonly name: string;
  /** The one that the page shows. */
  readonly uid: string;
  /** Another one: they may have changed. */
  readonly signal: unknown;
  readonly view: View;
}

export function Runs({ namespace, name, uid, signal, view }: RunsProps): ReactNode {
  const kc = useKubecast();
  const read = useMemo(() => () => pastJobs(kc, jobs, { namespace, name, limit: most }), [kc, namespace, name]);
  const { data } = useReading(read, signal, 1_500);
  const others = (data?.items ?? []).filter((job) => job.uid !== uid);
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
                </a>
                {why && <div className="state-detail" translate="no">{why}</div>}
              </div>
            </li>
          );
        })}
      </ul>
      {data?.more && <p className="none">{t.runsMore}</p>}
    </section>
  );
}

import type { ReactNode } from 'react';
import type { JobRow } from './job.ts';
import { t } from './texts.ts';
import './jobs.css';

/** Succeeded of completions. The numbers say it all; the bar is for the eye. */
export function Progress({ succeeded, completions }: Pick<JobRow, 'succeeded' | 'completions'>): ReactNode {
  if (completions === undefined) return <span className="cell-number">{t.done(succeeded)}</span>;
  const share = completions > 0 ? Math.min(1, succeeded / completions) : 1;
  return (
    <span className="progress" data-full={share === 1 || undefined}>
      <span className="progress-bar" aria-hidden="true">
        <span style={{ width: `${share * 100}%` }} />
      </span>
      <span className="cell-number">
        {succeeded}/{completions}
      </span>
    </span>
  );
}

import type { ReactNode } from 'react';
import { WithPlaces } from '../queues/places.tsx';
import { TablePage } from '../table/TablePage.tsx';
import { jobColumns } from './columns.tsx';
import { exportedJobs } from './exported.ts';
import { jobRow, jobStates, type JobRow } from './job.ts';
import { WithPast } from './past.tsx';
import { linkToJob, type View } from '../view/view.ts';
import { stateName } from '../state/texts.ts';
import './jobs.css';

const texts = (row: JobRow<string>): readonly string[] => [row.name, row.namespace, row.owner, row.queue, row.state, stateName(row.state), row.detail];

export const narrowLine = (row: JobRow<string>): string =>
  [row.completions === undefined ? '' : `${row.succeeded}/${row.completions}`, row.namespace, row.owner].filter(Boolean).join(' · ');

export function JobsPage({ view }: { readonly view: View }): ReactNode {
  const href = (row: JobRow<string>): string => linkToJob(row.namespace, row.name, view);
  return (
    <WithPlaces namespace={view.namespace}>
      <WithPast namespace={view.namespace}>
        <TablePage view={view} exported={exportedJobs} name="jobs" read={jobRow} columns={jobColumns} states={jobStates} texts={texts} narrowLine={narrowLine} href={href} />
      </WithPast>
    </WithPlaces>
  );
}

import type { Collection } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { TablePage, type TablePageProps } from '../table/TablePage.tsx';
import { jobColumns } from './columns.tsx';
import { jobHeader, jobLine } from './exported.ts';
import { jobRow, jobStates, type Job, type JobRow } from './job.ts';
import { linkToJob } from '../view/view.ts';
import { stateName } from '../state/texts.ts';
import './jobs.css';

const texts = (row: JobRow): readonly string[] => [row.name, row.namespace, row.owner, row.queue, row.state, stateName(row.state), row.detail];

export const narrowLine = (row: JobRow): string =>
  [row.completions === undefined ? '' : `${row.succeeded}/${row.completions}`, row.namespace, row.owner].filter(Boolean).join(' · ');

const exported = { header: jobHeader, line: jobLine };

type Props = Pick<TablePageProps<Job, JobRow>, 'view' | 'filters' | 'empty'> & { readonly collection: Collection<Job> };

export function JobsPage(props: Props): ReactNode {
  const href = (row: JobRow): string => linkToJob(row.namespace, row.name, props.view);
  return <TablePage {...props} exported={exported} name="jobs" read={jobRow} columns={jobColumns} states={jobStates} texts={texts} narrowLine={narrowLine} href={href} />;
}

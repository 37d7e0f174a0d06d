// The tables of jobs and of pods, where there are many.

import type { ReactNode } from 'react';
import type { TableName } from '../feed/kinds.ts';
import { jobs, pods } from '../job/resources.ts';
import { jobColumns } from '../jobs/columns.tsx';
import { jobFields, jobRow, type JobRow } from '../jobs/job.ts';
import { narrowLine as jobLine } from '../jobs/JobsPage.tsx';
import { podColumns } from '../pods/columns.tsx';
import { podFields, podRow, type PodRow } from '../pods/pod.ts';
import { narrowLine as podLine } from '../pods/PodsPage.tsx';
import { linkToJob, linkToObject, type View } from '../view/view.ts';
import { LargePage } from './LargePage.tsx';

interface LargeTableProps {
  readonly page: TableName;
  readonly view: View;
}

export function LargeTable({ page, ...table }: LargeTableProps): ReactNode {
  const { view } = table;
  if (page === 'jobs') {
    const href = (row: JobRow): string => linkToJob(row.namespace, row.name, view);
    return <LargePage {...table} name="jobs" resource={jobs} fields={jobFields} read={jobRow} columns={jobColumns} narrowLine={jobLine} href={href} />;
  }
  const href = (row: PodRow): string => linkToObject('pods', row.namespace, row.name, view);
  return <LargePage {...table} name="pods" resource={pods} fields={podFields} read={podRow} columns={podColumns} narrowLine={podLine} href={href} />;
}

// The tables of jobs and of pods, where there are many.

import type { ReactNode } from 'react';
import { jobs, pods } from '../job/resources.ts';
import { jobColumns } from '../jobs/columns.tsx';
import { exportedJobs } from '../jobs/exported.ts';
import { jobFields } from '../jobs/fields.ts';
import { listedJob, type JobRow } from '../jobs/job.ts';
import { narrowLine as narrowJob } from '../jobs/JobsPage.tsx';
import { WithPast } from '../jobs/past.tsx';
import { podColumns } from '../pods/columns.tsx';
import { podHeader, podLine } from '../pods/exported.ts';
import { podFields } from '../pods/fields.ts';
import { podRow, type PodRow } from '../pods/pod.ts';
import { narrowLine as narrowPod } from '../pods/PodsPage.tsx';
import { WithPlaces } from '../queues/places.tsx';
import { linkToJob, linkToObject, type TableName, type View } from '../view/view.ts';
import { VirtualPage } from './VirtualPage.tsx';

const podFile = { header: podHeader, line: podLine };

interface LargeTableProps {
  readonly page: TableName;
  readonly view: View;
}

export function LargeTable({ page, ...table }: LargeTableProps): ReactNode {
  const { view } = table;
  if (page === 'jobs') {
    const href = (row: JobRow<string>): string => linkToJob(row.namespace, row.name, view);
    return (
      <WithPlaces namespace={view.namespace}>
        <WithPast namespace={view.namespace}>
          <VirtualPage {...table} name="jobs" resource={jobs} fields={jobFields} read={listedJob} columns={jobColumns} narrowLine={narrowJob} href={href} exported={exportedJobs} />
        </WithPast>
      </WithPlaces>
    );
  }
  const href = (row: PodRow): string => linkToObject('pods', row.namespace, row.name, view);
  return <VirtualPage {...table} name="pods" resource={pods} fields={podFields} read={podRow} columns={podColumns} narrowLine={narrowPod} href={href} exported={podFile} />;
}

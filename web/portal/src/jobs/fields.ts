// Apart from what reads them: the first load names them, and reads no job.

import { rowFields } from '../table/owner.ts';

/** The path of the label that names Kueue's queue. */
export const queuePath = 'metadata.labels.kueue\\.x-k8s\\.io/queue-name';

/** What of a job is read here; the rest stays with the gateway. */
export const jobFields = [
  ...rowFields,
  '$status',
  queuePath,
  'metadata.annotations.kueue\\.x-k8s\\.io/queue-name',
  'spec.suspend',
  'spec.parallelism',
  'spec.completions',
  'status.active',
  'status.ready',
  'status.succeeded',
  'status.failed',
  'status.startTime',
  'status.completionTime',
  'status.conditions',
];

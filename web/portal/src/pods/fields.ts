// Apart from what reads them: the first load names them, and reads no pod.

import { rowFields } from '../table/owner.ts';

/** What of a pod is read here; the rest stays with the gateway. */
export const podFields = [
  ...rowFields,
  '$status',
  'metadata.labels.batch\\.kubernetes\\.io/job-name',
  'metadata.ownerReferences',
  'spec.nodeName',
  'spec.containers.name',
  'spec.initContainers.name',
  'spec.initContainers.restartPolicy',
  'status.phase',
  'status.reason',
  'status.message',
  'status.conditions',
  ...['initContainerStatuses', 'containerStatuses'].flatMap((statuses) =>
    ['name', 'ready', 'restartCount', 'state', ...['reason', 'exitCode', 'signal', 'finishedAt'].map((field) => `lastState.terminated.${field}`)].map((field) => `status.${statuses}.${field}`),
  ),
];

// What of a cluster a job's page shows.

import { defineResource, type KubeObject } from '@kubecast/sdk';
import type { Job } from '../jobs/job.ts';
import type { Pod } from '../pods/pod.ts';
import type { ClusterEvent } from './Events.tsx';

export const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
export const pods = defineResource<Pod>()({ version: 'v1', plural: 'pods' });
export const events = defineResource<ClusterEvent>()({ version: 'v1', plural: 'events' });
export const namespaces = defineResource<KubeObject>()({ version: 'v1', plural: 'namespaces' });

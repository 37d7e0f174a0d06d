import { defineResource, type KubeObject } from '@kubecast/sdk';
import { useAccess, useCount, useLivePage, useObject } from '@kubecast/sdk/react';

type Job = KubeObject & { readonly status?: { readonly active?: number } };
const jobs = defineResource<Job>()({ group: 'batch', version: 'v1', plural: 'jobs' });
const pods = defineResource<KubeObject>()({ version: 'v1', plural: 'pods' });

/** A page of all jobs, how many are active, and one of them. */
export function NewestJobs({ offset }: { readonly offset: number }) {
  const { data, total, status } = useLivePage(jobs, { sort: ['-metadata.creationTimestamp'], limit: 1, offset });
  const active = useCount(jobs, ['status.active']);
  const train = useObject(jobs, { namespace: 'a', name: 'train', fields: ['status.active'] });
  const logs = useAccess(pods, { namespace: 'a', verb: 'get', subresource: 'log' });
  return (
    <p>
      {status}: {data.map((job) => job.metadata.name).join()} of {total ?? '?'}; {active.data.map(({ value, count }) => `${value}×${count}`).join()};{' '}
      {train.data?.metadata.name ?? 'none'}; {logs.data?.allowed ? 'logs' : 'no logs'}
    </p>
  );
}

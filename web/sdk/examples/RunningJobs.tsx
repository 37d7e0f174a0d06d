import { defineResource, type KubeObject } from '@kubecast/sdk';
import { useWatch } from '@kubecast/sdk/react';

const jobs = defineResource<KubeObject>()({ group: 'batch', version: 'v1', plural: 'jobs' });

export function RunningJobs({ team }: { readonly team: string }) {
  const { data, status } = useWatch(jobs, { namespace: team, where: 'status.active!=' });
  if (status === 'loading') return <p>Loading</p>;
  return (
    <ul data-status={status}>
      {data.map((job) => <li key={job.metadata.uid}>{job.metadata.name}</li>)}
    </ul>
  );
}

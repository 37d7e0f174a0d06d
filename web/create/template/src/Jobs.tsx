import { useWatch } from '@kubecast/sdk/react';
import { jobs } from './kubernetes.ts';

export function Jobs({ onOpen }: { onOpen: (job: { namespace: string; name: string }) => void }) {
  const { data, status, asOf, error } = useWatch(jobs, { fields: ['status.active', 'status.succeeded', 'status.failed'] });
  if (status === 'denied') return <p role="alert">{error?.message}</p>;
  if (status === 'loading') return <p>Loading</p>;
  return (
    <table>
      <caption>Jobs{asOf !== undefined && `, as of ${new Date(asOf).toLocaleTimeString()}`}</caption>
      <thead>
        <tr><th>Namespace</th><th>Name</th><th>Active</th><th>Succeeded</th><th>Failed</th></tr>
      </thead>
      <tbody>
        {data.map(({ metadata: { uid, namespace = '', name }, status: { active = 0, succeeded = 0, failed = 0 } = {} }) => (
          <tr key={uid}>
            <td>{namespace}</td>
            <td><button onClick={() => onOpen({ namespace, name })}>{name}</button></td>
            <td>{active}</td><td>{succeeded}</td><td>{failed}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

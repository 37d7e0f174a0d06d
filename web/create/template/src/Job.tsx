import { useLogs, useObject } from '@kubecast/sdk/react';
import { jobs } from './kubernetes.ts';

export function Job({ namespace, name, onBack }: { namespace: string; name: string; onBack: () => void }) {
  const { data: job, status } = useObject(jobs, { namespace, name });
  const log = useLogs(jobs, { namespace, name, tailLines: 200 });
  return (
    <article>
      <button onClick={onBack}>All jobs</button>
      <h1>{namespace}/{name}</h1>
      <p>{job ? `${job.status?.active ?? 0} active, ${job.status?.succeeded ?? 0} succeeded, ${job.status?.failed ?? 0} failed` : status === 'live' ? 'It is gone' : status}</p>
      {log.status === 'denied' ? <p role="alert">{log.error?.message}</p> : <pre>{log.data.map((entry) => (entry.type === 'line' ? `${entry.pod} ${entry.text}\n` : `-- ${entry.type}\n`))}</pre>}
    </article>
  );
}

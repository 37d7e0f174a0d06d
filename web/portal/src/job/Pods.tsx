import type { WatchStatus } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import type { PodRow } from '../pods/pod.ts';
import { StateMark } from '../state/StateMark.tsx';

interface PodsProps {
  readonly rows: readonly PodRow[];
  readonly status: WatchStatus;
  readonly message: string | undefined;
}

/** The pods that there are now; those that were removed are only in the history. */
export function Pods({ rows, status, message }: PodsProps): ReactNode {
  if (status === 'denied') return <p className="job-none">Its pods may not be shown. {message}</p>;
  if (rows.length === 0) return <p className="job-none">{status === 'loading' ? 'Loading…' : 'There are no pods.'}</p>;
  return (
    <div className="job-scroller" tabIndex={0}>
      <table className="job-table">
        <thead>
          <tr>
            <th scope="col">Name</th>
            <th scope="col">State</th>
            <th scope="col">Restarts</th>
            <th scope="col">Node</th>
            <th scope="col">Age</th>
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.uid}>
              <td className="cell-name">{row.name}</td>
              <td>
                <StateMark {...row} />
              </td>
              <td className={row.restarts === 0 ? 'none' : 'cell-number'}>{row.restarts}</td>
              <td>{row.node || '–'}</td>
              <td>
                <Age since={row.created} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

import type { WatchStatus } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import type { PodRow } from '../pods/pod.ts';
import { StateMark } from '../state/StateMark.tsx';
import { Listing } from './Listing.tsx';
import { linkToObject, type View } from '../view/view.ts';
import { t } from './texts.ts';

interface PodsProps {
  readonly rows: readonly PodRow[];
  readonly status: WatchStatus;
  readonly message: string | undefined;
  readonly view: View;
}

/** The pods that there are now; those that were removed are only in the history. */
export function Pods({ rows, status, message, view }: PodsProps): ReactNode {
  return (
    <Listing status={status} message={message} {...t.pods}>
      {rows.map((row) => (
        <tr key={row.uid}>
          <td className="cell-name" translate="no">
            <a className="row-link" href={linkToObject('pods', row.namespace, row.name, view)}>
              {row.name}
            </a>
          </td>
          <td>
            <StateMark {...row} />
          </td>
          <td className={row.restarts === 0 ? 'none' : 'cell-number'}>{row.restarts}</td>
          <td translate="no">{row.node ? <a href={linkToObject('nodes', '', row.node, view)}>{row.node}</a> : '–'}</td>
          <td>
            <Age since={row.created} />
          </td>
        </tr>
      ))}
    </Listing>
  );
}

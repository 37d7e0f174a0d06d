import type { KubeObject, Status } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Listing } from '../job/Listing.tsx';
import { timeOf } from '../jobs/job.ts';
import { t } from './texts.ts';

interface AnyCondition {
  readonly type: string;
  readonly status: string;
  readonly reason: string;
  readonly message: string;
  readonly since: number | undefined;
}

/** The conditions of whatever kind, where it has some as Kubernetes' conventions want them. */
export function conditionsOf(object: KubeObject | undefined): readonly AnyCondition[] {
  const { status } = (object ?? {}) as { status?: { conditions?: unknown } | null };
  const list = Array.isArray(status?.conditions) ? (status.conditions as unknown[]) : [];
  const text = (value: unknown): string => (typeof value === 'string' ? value : '');
  return list.flatMap((one) => {
    if (typeof one !== 'object' || one === null) return [];
    const { type, status: value, reason, message, lastTransitionTime } = one as Record<string, unknown>;
    return type ? [{ type: text(type), status: text(value), reason: text(reason), message: text(message), since: timeOf(text(lastTransitionTime)) }] : [];
  });
}

export function Conditions({ object, status }: { object: KubeObject | undefined; status: Status }): ReactNode {
  const { type, status: value, since, reason, message, none } = t.conditions;
  return (
    <Listing status={status} message={undefined} denied={t.cannotBeShown} none={none} headers={[type, value, since, reason, message]}>
      {conditionsOf(object).map((one) => (
        <tr key={one.type} translate="no">
          <td className="cell-name">{one.type}</td>
          <td>{one.status}</td>
          <td>
            <Age since={one.since} />
          </td>
          <td>{one.reason}</td>
          <td className="job-message">{one.message}</td>
        </tr>
      ))}
    </Listing>
  );
}

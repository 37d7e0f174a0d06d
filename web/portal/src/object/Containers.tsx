import type { Status } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Listing } from '../job/Listing.tsx';
import { timeOf } from '../jobs/job.ts';
import type { Pod } from '../pods/pod.ts';
import { StateMark } from '../state/StateMark.tsx';
import { t } from './texts.ts';

interface ContainerState {
  readonly waiting?: { readonly reason?: string; readonly message?: string };
  readonly running?: { readonly startedAt?: string };
  readonly terminated?: { readonly reason?: string; readonly exitCode?: number; readonly message?: string; readonly finishedAt?: string };
}

interface ContainerStatus {
  readonly name: string;
  readonly ready?: boolean;
  readonly restartCount?: number;
  readonly state?: ContainerState;
  readonly lastState?: ContainerState;
}

interface ContainerRow {
  readonly name: string;
  readonly image: string;
  readonly init: boolean;
  readonly state: string;
  readonly detail: string;
  readonly message: string;
  readonly since: number | undefined;
  readonly ready: boolean;
  readonly restarts: number;
  /** How it ended the last time. */
  readonly before: string;
}

/** Those that run before the others first. */
export function containersOf(pod: Pod): readonly ContainerRow[] {
  const { spec = {}, status = {} } = pod as { spec?: Record<string, unknown>; status?: Record<string, unknown> };
  const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? value : []);
  const rows = (key: 'initContainers' | 'containers', statuses: string): ContainerRow[] => {
    const said = new Map((list(status[statuses]) as readonly ContainerStatus[]).map((one) => [one.name, one]));
    return (list(spec[key]) as readonly { name: string; image?: string }[]).map(({ name, image = '' }) => {
      const { ready = false, restartCount = 0, state = {}, lastState } = said.get(name) ?? { name };
      return { name, image, init: key === 'initContainers', ready, restarts: restartCount, before: lastState?.terminated ? ending(lastState.terminated) : '', ...stateOf(state) };
    });
  };
  return [...rows('initContainers', 'initContainerStatuses'), ...rows('containers', 'containerStatuses')];
}

function stateOf({ waiting, running, terminated }: ContainerState): Pick<ContainerRow, 'state' | 'detail' | 'message' | 'since'> {
  if (running) return { state: 'Running', detail: '', message: '', since: timeOf(running.startedAt) };
  if (terminated) {
    const { reason, exitCode } = terminated;
    return { state: reason || (exitCode === 0 ? 'Completed' : 'Error'), detail: exitCode === undefined || exitCode === 0 ? '' : t.exit(exitCode), message: terminated.message ?? '', since: timeOf(terminated.finishedAt) };
  }
  return { state: waiting?.reason || 'Waiting', detail: '', message: waiting?.message ?? '', since: undefined };
}

function ending({ reason = '', exitCode }: NonNullable<ContainerState['terminated']>): string {
  const code = exitCode === undefined ? '' : t.exit(exitCode);
  return reason && reason !== 'Error' ? [reason, code].filter(Boolean).join(' · ') : code;
}

export function Containers({ pod, status }: { pod: Pod | undefined; status: Status }): ReactNode {
  const { name, state, ready, restarts, since, image, none } = t.containers;
  return (
    <Listing status={status} message={undefined} denied={t.cannotBeShown} none={none} headers={[name, state, ready, restarts, since, image]}>
      {(pod ? containersOf(pod) : []).map((row) => (
        <tr key={row.name}>
          <td className="cell-name">
            <span translate="no">{row.name}</span>
            {row.init && <span className="state-detail"> {t.init}</span>}
          </td>
          <td>
            <StateMark {...row} />
          </td>
          <td>{row.ready ? t.yes : t.no}</td>
          <td className={row.restarts === 0 ? 'none' : 'cell-number'}>
            {t.count(row.restarts)}
            {row.before && <span className="state-detail"> {t.lastEnd(row.before)}</span>}
          </td>
          <td>
            <Age since={row.since} />
          </td>
          <td translate="no">{row.image}</td>
        </tr>
      ))}
    </Listing>
  );
}

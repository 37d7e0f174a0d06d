// Each pod that a job has had: what the history says of its life, and what there is of it now.

import type { Run } from '@kubecast/sdk';
import type { PodRow } from '../pods/pod.ts';
import { toneOf } from '../state/tone.ts';

export interface PodLife extends Pick<PodRow, 'uid' | 'name' | 'namespace' | 'node' | 'detail' | 'message' | 'restarts' | 'created'> {
  readonly state: string;
  /** It is there now, as far as is known, so that it has a page. */
  readonly there: boolean;
  /** What the history says of it; undefined: nothing yet. */
  readonly run: Run | undefined;
}

/** The pods that are there, and those that were: a run is told at each of its changes, the newest last. The oldest pods come first. */
export function livesOf(rows: readonly PodRow[], told: readonly Run[]): readonly PodLife[] {
  const runs = new Map(told.map((run) => [run.uid, run]));
  const there = new Set(rows.map(({ uid }) => uid));
  const lives = [
    ...rows.map((row): PodLife => ({ ...row, there: true, run: runs.get(row.uid) })),
    ...[...runs.values()].filter(({ uid }) => !there.has(uid)).map(lifeOf),
  ];
  return lives.sort((a, b) => a.created - b.created || indexOf(a).localeCompare(indexOf(b), undefined, { numeric: true }) || a.name.localeCompare(b.name));
}

const indexOf = ({ run }: PodLife): string => run?.index ?? '';

function lifeOf(run: Run): PodLife {
  const { uid, name, namespace, node, restarts, message, reason, createdAt: created = 0 } = run;
  const state = stateOf(run);
  return { uid, name, namespace, node, restarts, message, created, state, detail: reason === state ? '' : reason, there: run.endedAt === undefined, run };
}

/** In kubectl's words, as of those that are there: what it prints of a pod in trouble is the reason. */
function stateOf({ startedAt, endedAt, reason }: Run): string {
  if (reason === 'Completed' || reason === 'Deleted' || ['failed', 'warning'].includes(toneOf(reason))) return reason;
  return endedAt !== undefined ? 'Failed' : startedAt === undefined ? 'Pending' : 'Running';
}

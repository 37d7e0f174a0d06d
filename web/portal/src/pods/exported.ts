// A pod as a line of a file.

import { timeCell, type Cell } from '../export/csv.ts';
import { t } from '../export/texts.ts';
import { stateName } from '../state/texts.ts';
import type { PodRow } from './pod.ts';

const { name, namespace, state, detail, message, ready, containers, restarts, node, job, owner, created } = t.columns;

export const podHeader: readonly string[] = [name, namespace, state, detail, message, ready, containers, restarts, node, job, owner, created];

export const podLine = (row: PodRow): readonly Cell[] => [
  row.name, row.namespace, stateName(row.state), row.detail, row.message, row.ready, row.containers, row.restarts, row.node, row.job, row.owner, timeCell(row.created),
];

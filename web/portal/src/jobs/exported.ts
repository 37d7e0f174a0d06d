// A job as a line of a file.

import { timeCell, type Cell } from '../export/csv.ts';
import { t } from '../export/texts.ts';
import { stateName } from '../state/texts.ts';
import type { JobRow } from './job.ts';

const { name, namespace, state, detail, message, succeeded, failed, completions, owner, queue, created, started, ended } = t.columns;

export const jobHeader: readonly string[] = [name, namespace, state, detail, message, succeeded, failed, completions, owner, queue, created, started, ended];

export const jobLine = (row: JobRow<string>): readonly Cell[] => [
  row.name, row.namespace, stateName(row.state), row.detail, row.message, row.succeeded, row.failed, row.completions, row.owner, row.queue, timeCell(row.created), timeCell(row.started), timeCell(row.finished),
];

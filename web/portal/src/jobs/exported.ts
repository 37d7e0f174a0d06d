// A job as a line of a file.

import type { PastJob } from '@kubecast/sdk';
import { ranLonger } from '../age/Elapsed.tsx';
import { secondsCell, timeCell, type Cell } from '../export/csv.ts';
import { t } from '../export/texts.ts';
import { saidOf } from '../state/said.ts';
import { stateName } from '../state/texts.ts';
import { ranSince, type JobRow } from './job.ts';
import { timesOf } from './RunTime.tsx';

const { name, namespace, state, detail, message, succeeded, failed, completions, owner, queue, created, started, ended, ran, longer, cause } = t.columns;

const header = [name, namespace, state, detail, message, succeeded, failed, completions, owner, queue, created, started, ended, ran, longer, cause];

/** As the table and the history have it: a job itself says that it began when its controller did, and of each failure no more than that there were too many. */
const line = (row: JobRow<string>, past?: PastJob): readonly Cell[] => [
  row.name, row.namespace, stateName(row.state), row.detail, row.message, row.succeeded, row.failed, row.completions, row.owner, row.queue,
  timeCell(row.created), timeCell(past ? past.startedAt : ranSince(row)), timeCell(row.finished), secondsCell(timesOf(row, past).ran), ranLonger(past) ? t.columns.yes : '', past?.state === row.state && past.cause ? saidOf(past.cause) : '',
];

export const exportedJobs = { header, line, uidOf: ({ uid }: JobRow<string>): string => uid };

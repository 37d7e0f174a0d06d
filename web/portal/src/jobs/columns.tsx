import { Age } from '../age/Age.tsx';
import { urgency } from '../state/tone.ts';
import type { Column } from '../table/DataTable.tsx';
import { TextCell } from '../table/TextCell.tsx';
import { ranSince, type JobRow } from './job.ts';
import { RunTime } from './RunTime.tsx';
import { Progress } from './Progress.tsx';
import { State } from './State.tsx';
import { t } from './texts.ts';

// The job that began last ran shortest. Jobs that have not begun come last.
function runTime(row: JobRow<string>): number | undefined {
  const since = ranSince(row);
  return since === undefined ? undefined : (row.finished ?? Date.now()) - since;
}

export const jobColumns: readonly Column<JobRow<string>>[] = [
  { id: 'name', header: t.columns.name, value: (row) => row.name, cell: (row) => <TextCell text={row.name} strong /> },
  { id: 'state', header: t.columns.state, value: (row) => urgency(row.state), cell: (row) => <State row={row} /> },
  { id: 'progress', header: t.columns.progress, value: (row) => row.succeeded / (row.completions ?? 1), cell: (row) => <Progress {...row} /> },
  { id: 'duration', header: t.columns.duration, numeric: true, value: runTime, cell: (row) => <RunTime row={row} /> },
  { id: 'age', header: t.columns.age, numeric: true, value: (row) => -row.created, cell: (row) => <Age since={row.created} /> },
  { id: 'namespace', header: t.columns.namespace, value: (row) => row.namespace, cell: (row) => <TextCell text={row.namespace} /> },
  { id: 'owner', header: t.columns.owner, sparse: true, value: (row) => row.owner, cell: (row) => <TextCell text={row.owner} /> },
  { id: 'queue', header: t.columns.queue, sparse: true, value: (row) => row.queue, cell: (row) => <TextCell text={row.queue} /> },
];

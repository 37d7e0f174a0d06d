import { Age } from '../age/Age.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { urgency } from '../state/tone.ts';
import type { Column } from '../table/DataTable.tsx';
import { TextCell } from '../table/TextCell.tsx';
import type { JobRow } from './job.ts';
import { Progress } from './Progress.tsx';
import { t } from './texts.ts';

// The job that began last ran shortest. Jobs that have not begun come last.
function runTime({ started, finished }: JobRow): number | undefined {
  return started === undefined ? undefined : (finished ?? Date.now()) - started;
}

export const jobColumns: readonly Column<JobRow>[] = [
  { id: 'name', header: t.columns.name, value: (row) => row.name, cell: (row) => <TextCell text={row.name} strong /> },
  { id: 'namespace', header: t.columns.namespace, value: (row) => row.namespace, cell: (row) => <TextCell text={row.namespace} /> },
  { id: 'state', header: t.columns.state, value: (row) => urgency(row.state), cell: (row) => <StateMark {...row} /> },
  { id: 'progress', header: t.columns.progress, value: (row) => row.succeeded / (row.completions ?? 1), cell: (row) => <Progress {...row} /> },
  { id: 'owner', header: t.columns.owner, value: (row) => row.owner, cell: (row) => <TextCell text={row.owner} /> },
  { id: 'queue', header: t.columns.queue, value: (row) => row.queue, cell: (row) => <TextCell text={row.queue} /> },
  { id: 'duration', header: t.columns.duration, value: runTime, cell: (row) => <Age since={row.started} until={row.finished} /> },
  { id: 'age', header: t.columns.age, value: (row) => -row.created, cell: (row) => <Age since={row.created} /> },
];

import { Age } from '../age/Age.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { urgency } from '../state/tone.ts';
import type { Column } from '../table/DataTable.tsx';
import { TextCell } from '../table/TextCell.tsx';
import type { PodRow } from './pod.ts';
import { t } from './texts.ts';

export const podColumns: readonly Column<PodRow>[] = [
  { id: 'name', header: t.columns.name, value: (row) => row.name, cell: (row) => <TextCell text={row.name} strong /> },
  { id: 'state', header: t.columns.state, value: (row) => urgency(row.state), cell: (row) => <StateMark {...row} /> },
  { id: 'ready', header: t.columns.ready, numeric: true, value: (row) => row.ready, cell: (row) => <span className="cell-number">{`${row.ready}/${row.containers}`}</span> },
  {
    id: 'restarts',
    header: t.columns.restarts,
    numeric: true,
    mostFirst: true,
    value: (row) => row.restarts,
    cell: (row) => <span className={row.restarts === 0 ? 'none' : 'cell-number'}>{row.restarts}</span>,
  },
  { id: 'age', header: t.columns.age, numeric: true, value: (row) => -row.created, cell: (row) => <Age since={row.created} /> },
  { id: 'node', header: t.columns.node, value: (row) => row.node, cell: (row) => <TextCell text={row.node} /> },
  { id: 'namespace', header: t.columns.namespace, value: (row) => row.namespace, cell: (row) => <TextCell text={row.namespace} /> },
  { id: 'owner', header: t.columns.owner, sparse: true, value: (row) => row.owner, cell: (row) => <TextCell text={row.owner} /> },
];

import { Age } from '../age/Age.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { urgency } from '../state/tone.ts';
import type { Column } from '../table/DataTable.tsx';
import { TextCell } from '../table/TextCell.tsx';
import type { PodRow } from './pod.ts';

export const podColumns: readonly Column<PodRow>[] = [
  { id: 'name', header: 'Name', value: (row) => row.name, cell: (row) => <TextCell text={row.name} strong /> },
  { id: 'namespace', header: 'Namespace', value: (row) => row.namespace, cell: (row) => <TextCell text={row.namespace} /> },
  { id: 'state', header: 'State', value: (row) => urgency(row.state), cell: (row) => <StateMark {...row} /> },
  { id: 'ready', header: 'Ready', value: (row) => row.ready, cell: (row) => <span className="cell-number">{`${row.ready}/${row.containers}`}</span> },
  {
    id: 'restarts',
    header: 'Restarts',
    value: (row) => row.restarts,
    cell: (row) => <span className={row.restarts === 0 ? 'none' : 'cell-number'}>{row.restarts}</span>,
  },
  { id: 'node', header: 'Node', value: (row) => row.node, cell: (row) => <TextCell text={row.node} /> },
  { id: 'owner', header: 'Owner', value: (row) => row.owner, cell: (row) => <TextCell text={row.owner} /> },
  { id: 'age', header: 'Age', value: (row) => -row.created, cell: (row) => <Age since={row.created} /> },
];

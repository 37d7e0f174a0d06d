import { Age } from '../age/Age.tsx';
import { StateMark } from '../state/StateMark.tsx';
import { urgency } from '../state/tone.ts';
import { column } from '../table/columns.ts';
import type { Columns } from '../table/DataTable.tsx';
import { TextCell } from '../table/TextCell.tsx';
import type { PodRow } from './pod.ts';

export const podColumns: Columns<PodRow> = [
  column({ id: 'name', header: 'Name', value: (row) => row.name, cell: (row) => <TextCell text={row.name} strong /> }),
  column({ id: 'namespace', header: 'Namespace', value: (row) => row.namespace, cell: (row) => <TextCell text={row.namespace} /> }),
  column({ id: 'state', header: 'State', value: (row) => urgency(row.state), cell: (row) => <StateMark {...row} /> }),
  column({ id: 'ready', header: 'Ready', value: (row) => row.ready, cell: (row) => <span className="cell-number">{`${row.ready}/${row.containers}`}</span> }),
  column({
    id: 'restarts',
    header: 'Restarts',
    value: (row) => row.restarts,
    cell: (row) => <span className={row.restarts === 0 ? 'none' : 'cell-number'}>{row.restarts}</span>,
  }),
  column({ id: 'node', header: 'Node', value: (row) => row.node, cell: (row) => <TextCell text={row.node} /> }),
  column({ id: 'owner', header: 'Owner', value: (row) => row.owner, cell: (row) => <TextCell text={row.owner} /> }),
  column({ id: 'age', header: 'Age', value: (row) => -row.created, cell: (row) => <Age since={row.created} /> }),
];

import type { ReactNode } from 'react';
import type { Columns } from './DataTable.tsx';
import type { Row, Tracked } from './rows.ts';

interface ColumnSpec<R extends Row> {
  readonly id: string;
  readonly header: string;
  /** What it is sorted by; undefined and the empty text always come last. */
  readonly value: (row: R) => string | number | undefined;
  readonly cell: (row: Tracked<R>) => ReactNode;
}

type Column<R extends Row> = Columns<R>[number];

export function column<R extends Row>({ id, header, value, cell }: ColumnSpec<R>): Column<R> {
  return {
    id,
    header,
    accessorFn: (row) => {
      const sortedBy = value(row);
      return sortedBy === '' ? undefined : sortedBy;
    },
    // Plain comparison: a collator takes seconds for tens of thousands of names, and names are ASCII.
    sortFn: (a, b, columnId) => {
      const [left, right] = [a.getValue<string | number>(columnId), b.getValue<string | number>(columnId)];
      return left < right ? -1 : left > right ? 1 : 0;
    },
    sortUndefined: 'last',
    cell: ({ row }) => cell(row.original),
  };
}

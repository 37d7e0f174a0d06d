// A sortable table of which only the rows in sight exist in the document.

import { createSortedRowModel, rowSortingFeature, tableFeatures, useTable, type ColumnDef } from '@tanstack/react-table';
import { useVirtualizer } from '@tanstack/react-virtual';
import { useRef, useState, type ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { TableHeader } from './TableHeader.tsx';
import type { Row, Tracked } from './rows.ts';
import { useMediaQuery } from './useMediaQuery.ts';
import './table.css';

const features = tableFeatures({ rowSortingFeature, sortedRowModel: createSortedRowModel() });

export type Columns<R extends Row> = readonly ColumnDef<typeof features, Tracked<R>>[];

export interface Sort {
  readonly column: string;
  readonly descending: boolean;
}

export interface DataTableProps<R extends Row> {
  /** Names the table to assistive technology, and the class that sets its columns' widths. */
  readonly name: string;
  readonly columns: Columns<R>;
  readonly rows: readonly Tracked<R>[];
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
  /** The second line of the first column where the screen is too narrow for the other columns. */
  readonly narrowLine: (row: R) => ReactNode;
  /** Shown instead of rows when there are none. */
  readonly children: ReactNode;
}

export function DataTable<R extends Row>(props: DataTableProps<R>): ReactNode {
  const { name, columns, rows, sort, onSort, narrowLine, children } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const narrow = useMediaQuery('(max-width: 700px)');
  const rowHeight = narrow ? 54 : 34;

  const table = useTable({
    features,
    columns: columns,
    data: rows,
    getRowId: (row) => row.uid,
    state: { sorting: [{ id: sort.column, desc: sort.descending }] },
  });
  const sorted = table.getRowModel().rows;

  const virtualizer = useVirtualizer({
    count: sorted.length,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => sorted[index]?.id ?? index,
    overscan: 12,
  });

  return (
    <div className={`table-frame table-${name}`} role="table" aria-label={name} aria-rowcount={sorted.length + 1}>
      {/* Focusable, so that arrow and page keys scroll it. */}
      <div className="table-scroller" ref={scroller} tabIndex={0} role="presentation">
        <TableHeader headers={table.getAllColumns().map(({ id, columnDef }) => ({ id, label: String(columnDef.header) }))} sort={sort} onSort={onSort} />
        {sorted.length === 0 ? (
          <div className="table-empty">{children}</div>
        ) : (
          <div role="rowgroup" className="table-body" style={{ height: virtualizer.getTotalSize() }}>
            {virtualizer.getVirtualItems().map((item) => {
              const row = sorted[item.index];
              if (!row) return null;
              return (
                <div
                  key={row.id}
                  role="row"
                  aria-rowindex={item.index + 2}
                  className="table-row"
                  data-name={row.original.name}
                  style={{ height: rowHeight, transform: `translateY(${item.start}px)` }}
                >
                  <Flash at={row.original.changedAt} />
                  {row.getAllCells().map((cell, index) => (
                    <div key={cell.id} role="cell" className={`table-cell column-${cell.column.id}`}>
                      <table.FlexRender cell={cell} />
                      {index === 0 && narrow && <div className="narrow-line">{narrowLine(row.original)}</div>}
                    </div>
                  ))}
                </div>
              );
            })}
          </div>
        )}
      </div>
    </div>
  );
}

const flashLasts = 2_500;

/** Marks a row whose state has just changed. */
function Flash({ at }: { at: number }): ReactNode {
  const past = Math.max(0, useNow() - at);
  // The key makes a second change begin anew.
  return past > flashLasts ? null : <FlashMark key={at} past={past} />;
}

function FlashMark({ past }: { past: number }): ReactNode {
  // A row scrolled into sight late joins in where the others are; once begun, it is left alone.
  const [delay] = useState(-past);
  return <span className="row-flash" aria-hidden="true" style={{ animationDelay: `${delay}ms` }} />;
}

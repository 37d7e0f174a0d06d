// A table of a few hundred rows at most, all of them in the document. What may be more is in DataTable.

import type { MouseEvent, ReactNode } from 'react';
import { useDensity } from '../density/density.ts';
import './listing.css';

export interface PlainColumn<R> {
  readonly id: string;
  readonly header: string;
  /** The header is the cluster's, and has no translation. */
  readonly foreign?: boolean;
  readonly cell: (row: R) => ReactNode;
  /** It can be sorted by. */
  readonly sortable?: boolean | undefined;
  /** Numbers stand at the right. */
  readonly numeric?: boolean | undefined;
}

interface PlainTableProps<R> {
  /** The id of what names it. */
  readonly labelledBy: string;
  readonly columns: readonly PlainColumn<R>[];
  readonly rows: readonly R[];
  readonly keyOf: (row: R) => string;
  /** Where a row leads. */
  readonly href?: (row: R) => string | undefined;
  readonly sort?: { readonly column: string; readonly descending: boolean } | undefined;
  readonly onSort?: (column: string) => void;
  /** Below the rows. */
  readonly children?: ReactNode;
}

export function PlainTable<R>({ labelledBy, columns, rows, keyOf, href, sort, onSort, children }: PlainTableProps<R>): ReactNode {
  const density = useDensity();
  return (
    <div className="plain-scroller" data-density={density} tabIndex={0} role="region" aria-labelledby={labelledBy}>
      <table className="plain-table" aria-labelledby={labelledBy}>
        <thead>
          <tr>
            {columns.map(({ id, header, sortable, numeric, foreign }) => {
              const direction = sort?.column === id ? (sort.descending ? 'descending' : 'ascending') : undefined;
              return (
                <th key={id} scope="col" aria-sort={sortable ? (direction ?? 'none') : undefined} data-numeric={numeric ? true : undefined} translate={foreign ? 'no' : undefined}>
                  {sortable && onSort ? (
                    <button type="button" onClick={() => onSort(id)}>
                      {header}
                      <svg className="sort-arrow" viewBox="0 0 8 8" aria-hidden="true" data-direction={direction}>
                        <path d="M1 5.5l3-3 3 3" />
                      </svg>
                    </button>
                  ) : (
                    header
                  )}
                </th>
              );
            })}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => {
            const to = href?.(row);
            return (
              <tr key={keyOf(row)} data-key={keyOf(row)} data-leads={to !== undefined || undefined} onClick={to === undefined ? undefined : (event) => follow(event, to)}>
                {columns.map(({ id, cell, numeric }, n) => (
                  <td key={id} data-numeric={numeric ? true : undefined}>
                    {n === 0 && to !== undefined ? (
                      <a className="row-link" href={to}>
                        {cell(row)}
                      </a>
                    ) : (
                      cell(row)
                    )}
                  </td>
                ))}
              </tr>
            );
          })}
        </tbody>
      </table>
      {children}
    </div>
  );
}

/** A click anywhere in a row is one on its link, unless it ends a selection of text. */
function follow(event: MouseEvent, href: string): void {
  if (event.target instanceof Element && event.target.closest('a, button')) return;
  if (getSelection()?.isCollapsed === false) return;
  location.hash = href;
}

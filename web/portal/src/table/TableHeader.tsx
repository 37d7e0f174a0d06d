import type { ReactNode } from 'react';
import { marks } from '../texts/punctuation.ts';
import type { Sort } from './sort.ts';
import { t } from './texts.ts';

interface TableHeaderProps {
  readonly columns: readonly { readonly id: string; readonly header: string; readonly fixed?: boolean | undefined; readonly numeric?: boolean | undefined; /** The most comes first at the first click. */ readonly mostFirst?: boolean | undefined }[];
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
}

export function TableHeader({ columns, sort, onSort }: TableHeaderProps): ReactNode {
  return (
    <div role="rowgroup" className="table-head">
      <div role="row" className="table-row" aria-rowindex={1}>
        {columns.map(({ id, header, fixed, numeric, mostFirst = false }) => {
          const sorted = sort.column === id;
          if (fixed) {
            return (
              <div key={id} role="columnheader" className={`table-cell column-${id} column-fixed`} data-numeric={numeric} title={t.notSorted}>
                {header}
                <span className="unseen">{marks.comma + t.notSorted}</span>
              </div>
            );
          }
          const direction = sort.descending ? 'descending' : 'ascending';
          return (
            <div key={id} role="columnheader" className={`table-cell column-${id}`} data-numeric={numeric} aria-sort={sorted ? direction : 'none'}>
              <button type="button" onClick={() => onSort({ column: id, descending: sorted ? !sort.descending : mostFirst })}>
                {header}
                <svg className="sort-arrow" viewBox="0 0 8 8" aria-hidden="true" data-direction={sorted ? direction : undefined}>
                  <path d="M1 5.5l3-3 3 3" />
                </svg>
              </button>
            </div>
          );
        })}
      </div>
    </div>
  );
}

// A sortable table of which only the rows in sight exist in the document.

import { useVirtualizer } from '@tanstack/react-virtual';
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type MouseEvent, type ReactNode } from 'react';
import { useNow } from '../age/clock.ts';
import { rowHeightOf, useDensity } from '../density/density.ts';
import { TableHeader } from './TableHeader.tsx';
import type { Row, Tracked } from './rows.ts';
import { sortRows, type Sort, type SortValue } from './sort.ts';
import { useHeld } from './useHeld.ts';
import { useMediaQuery } from './useMediaQuery.ts';
import { t } from './texts.ts';
import { useRoving } from './useRoving.ts';
import './table.css';

export interface Column<R extends Row> {
  readonly id: string;
  readonly header: string;
  /** It cannot be sorted by. */
  readonly fixed?: boolean | undefined;
  /** Numbers and times stand at the right. */
  readonly numeric?: boolean | undefined;
  /** Sorted by it, the most comes first at the first click. */
  readonly mostFirst?: boolean | undefined;
  /** Often no row has it. */
  readonly sparse?: boolean | undefined;
  /** What it is sorted by; undefined and the empty text come last. */
  readonly value: (row: R) => SortValue;
  readonly cell: (row: Tracked<R>) => ReactNode;
}

export interface Places {
  readonly offset: number;
  readonly total: number;
  /** Which row is the first in sight. */
  readonly onFirst: (index: number) => void;
}

export interface DataTableProps<R extends Row> {
  /** Names the table to assistive technology, and the class that sets its columns' widths. */
  readonly name: string;
  readonly columns: readonly Column<R>[];
  /** The ids of columns that would tell nothing, and so are left out. */
  readonly without?: readonly string[] | undefined;
  /** Somebody has chosen the columns, so that a window that is not wide leaves out none. */
  readonly chosen?: boolean | undefined;
  readonly rows: readonly Tracked<R>[];
  /** The rows are only some of them, in order, and these are their places; undefined: they are all, to be sorted here. */
  readonly places?: Places | undefined;
  readonly sort: Sort;
  readonly onSort: (sort: Sort) => void;
  /** The second line of the first column where the screen is too narrow for the other columns. */
  readonly narrowLine: (row: R) => ReactNode;
  /** What is asked for: while it stays, rows that are pointed at stay where they are. */
  readonly asked: string;
  /** Where a row leads; undefined: nowhere. */
  readonly href?: ((row: R) => string | undefined) | undefined;
  /** Shown instead of rows when there are none. */
  readonly children: ReactNode;
}

export function DataTable<R extends Row>(props: DataTableProps<R>): ReactNode {
  const { name, columns, without = none, chosen = false, rows, places, sort, onSort, narrowLine, asked, href, children } = props;
  const scroller = useRef<HTMLDivElement>(null);
  const narrow = useMediaQuery('(max-width: 700px)');
  const density = useDensity();
  const rowHeight = rowHeightOf(density, narrow);

  const offset = places?.offset ?? 0;
  const sorted = useMemo(() => {
    if (places) return rows;
    const by = columns.find(({ id }) => id === sort.column) ?? columns[0];
    return by ? sortRows(rows, by.value, sort.descending) : rows;
  }, [rows, columns, places, sort.column, sort.descending]);

  const told = useMemo(() => columns.filter(({ id }) => !without.includes(id)), [columns, without]);
  const { rows: shown, gone, more, onPointerMove, onPointerLeave, onFocused, onScrolled, release } = useHeld(sorted, `${asked} ${sort.column} ${sort.descending} ${offset}`);
  const toTop = (): void => {
    release();
    if (scroller.current) scroller.current.scrollTop = 0;
  };

  const count = places ? Math.max(places.total, offset + shown.length) : shown.length;
  const virtualizer = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    overscan: 12,
  });
  const { current, onFocus, onKeyDown } = useRoving(scroller, count, 15, virtualizer.scrollToIndex);
  // A row to which the tab key leads has to be in the document.
  const items = virtualizer.getVirtualItems();
  const tabbed = items.some(({ index }) => index === current) ? current : items[0]?.index;
  // The height of rows depends on the width of the window and on their density. With another one, the row at the top stays there.
  const before = useRef(rowHeight);
  useLayoutEffect(() => {
    if (before.current === rowHeight) return;
    if (scroller.current) scroller.current.scrollTop *= rowHeight / before.current;
    before.current = rowHeight;
    virtualizer.measure();
  }, [virtualizer, rowHeight]);
  // In another order nobody is looking for the row that happens to be in the middle now.
  useEffect(() => {
    if (scroller.current) scroller.current.scrollTop = 0;
  }, [sort.column, sort.descending]);

  return (
    <div className={`table-frame table-${name}`} data-density={density} data-without={without.join(' ')} data-chosen={chosen || undefined} onPointerMove={onPointerMove} onPointerLeave={onPointerLeave}>
      {more > 0 && (
        <button type="button" className="button table-more" onClick={toTop}>
          {t.more(more)}
        </button>
      )}
      {/* Focusable, so that arrow and page keys scroll it. */}
      <div className="table-scroller" ref={scroller} onScroll={() => {
        const top = scroller.current?.scrollTop ?? 0;
        onScrolled(top > 0);
        places?.onFirst(Math.floor(top / rowHeight));
      }} tabIndex={0} role="table" aria-label={t.names[name] ?? name} aria-rowcount={count + 1}>
        <TableHeader columns={told} sort={sort} onSort={onSort} />
        {count === 0 ? (
          <div role="row" className="table-empty">
            <div role="cell">{children}</div>
          </div>
        ) : (
          <div role="rowgroup" className="table-body" onFocus={(event) => {
            onFocus(event);
            onFocused(event.target.matches(':focus-visible'));
          }} onBlur={({ relatedTarget, currentTarget }) => !(relatedTarget instanceof Node && currentTarget.contains(relatedTarget)) && onFocused(false)} onKeyDown={onKeyDown} style={{ height: count * rowHeight }}>
            {items.map((item) => {
              const row = shown[item.index - offset];
              if (!row) return <Unknown key={item.index} index={item.index} top={item.index * rowHeight} />;
              const to = href?.(row);
              return (
                <div
                  key={row.uid}
                  role="row"
                  aria-rowindex={item.index + 2}
                  className="table-row"
                  data-index={item.index}
                  data-name={row.name}
                  data-gone={gone.has(row.uid) || undefined}
                  data-leads={to === undefined ? undefined : true}
                  onClick={to === undefined ? undefined : (event) => follow(event, to)}
                  style={{ transform: `translateY(${item.index * rowHeight}px)` }}
                >
                  <Flash at={row.changedAt} />
                  {told.map(({ id, numeric, cell }, index) => (
                    <div key={id} role="cell" className={`table-cell column-${id}`} data-numeric={numeric}>
                      {index === 0 && to !== undefined ? (
                        <a className="row-link" href={to} tabIndex={item.index === tabbed ? 0 : -1}>
                          {cell(row)}
                        </a>
                      ) : (
                        cell(row)
                      )}
                      {index === 0 && narrow && <div className="narrow-line">{narrowLine(row)}</div>}
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

const none: readonly string[] = [];

/** A row that has not been told yet. */
function Unknown({ index, top }: { readonly index: number; readonly top: number }): ReactNode {
  return (
    <div role="row" aria-rowindex={index + 2} aria-busy="true" className="table-row" style={{ transform: `translateY(${top}px)` }}>
      <div role="cell" className="table-unknown" />
    </div>
  );
}

/** A click anywhere in a row is one on its link, unless it ends a selection of text. */
function follow(event: MouseEvent, href: string): void {
  if (event.target instanceof Element && event.target.closest('a, button')) return;
  if (getSelection()?.isCollapsed === false) return;
  location.hash = href;
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

// The lines of a log as a list of which the document has what is in sight.

import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { Line, lookOf, notLoaded } from './Line.tsx';
import { indexOf, type Rows } from './rows.ts';
import { copied, selectedIn } from './selection.ts';
import type { Gap } from './stretches.ts';
import { t } from './texts.ts';

const rowHeight = 18;

export interface LinesProps {
  readonly rows: Rows;
  readonly search: string;
  /** There are several containers, so that each line says whose it is. */
  readonly named: string | undefined;
  readonly wrap: boolean;
  readonly times: boolean;
  /** The row that is marked, and shown as often as this changes. */
  readonly goTo?: Mark | undefined;
  /** What it is called. */
  readonly label: string;
  /** Whether something is being loaded. */
  readonly busy: boolean;
  /** The reader comes to the first row. */
  readonly onTop: () => void;
  /** The reader comes to lines that are not loaded, from above or from below. */
  readonly onGap: (gap: Gap, edge: 'first' | 'last') => void;
  readonly hrefOf: (id: number) => string | undefined;
  readonly onLink: (id: number) => void;
}

export interface Mark {
  readonly id: number;
  /** It is in sight: nothing is to move. */
  readonly still?: boolean;
}

/** Stays at the end while it is there, unless something is selected, and where the reader is otherwise. */
export function Lines({ rows, search, named, wrap, times, goTo, label, busy, onTop, onGap, hrefOf, onLink }: LinesProps): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const [atEnd, setAtEnd] = useState(true);
  const selected = useSelected(scroller);
  const virtualizer = useVirtualizer({
    count: rows.count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowHeight,
    getItemKey: (index) => rows.at(index)?.id ?? index,
    overscan: 20,
    // Where a selection begins and ends stays in the document: without these it would be gone.
    rangeExtractor: (range) => {
      const seen = defaultRangeExtractor(range);
      const ends = (selected ?? []).map((id) => indexOf(rows, id)).filter((index) => index < rows.count && !seen.includes(index));
      return ends.length > 0 ? [...new Set([...seen, ...ends])].sort((a, b) => a - b) : seen;
    },
  });
  const last = rows.at(rows.count - 1)?.id;
  const height = virtualizer.getTotalSize();
  const follows = atEnd && selected === undefined;
  useEffect(() => {
    const element = scroller.current;
    if (element && follows) element.scrollTop = element.scrollHeight;
  }, [follows, last, rows.count, height]);
  /** Where a row begins. */
  const topOf = (index: number): number => virtualizer.measurementsCache[index]?.start ?? index * rowHeight;
  // What comes or goes in front of the first line in sight moves nothing that is in sight.
  const seen = useRef<Seen>(undefined);
  const before = useRef(rows);
  useLayoutEffect(() => {
    const element = scroller.current;
    const anchor = seen.current;
    if (element && anchor && !follows && before.current !== rows) {
      const moved = topOf(indexOf(rows, anchor.id)) - anchor.top - element.scrollTop;
      if (moved !== 0) element.scrollTop += moved;
    }
    before.current = rows;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- as often as there are other rows
  }, [rows]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (!element) return;
    const { scrollTop, clientHeight } = element;
    setAtEnd(element.scrollHeight - scrollTop - clientHeight < 2 * rowHeight);
    const up = scrollTop < (seen.current?.scrollTop ?? 0);
    const first = virtualizer.getVirtualItemForOffset(scrollTop)?.index ?? 0;
    const row = rows.at(first);
    const anchor = row?.gap ? first + 1 : first;
    seen.current = { id: rows.at(anchor)?.id ?? 0, top: topOf(anchor) - scrollTop, scrollTop };
    if (busy) return;
    if (up && scrollTop < 10 * rowHeight) onTop();
    for (let index = first; index < rows.count && topOf(index) < scrollTop + clientHeight; index++) {
      const gap = rows.at(index)?.gap;
      if (!gap) continue;
      onGap(gap, index === first ? 'last' : 'first');
      return;
    }
  };
  /** At the first row nothing scrolls any more. */
  const onUp = (): void => {
    if (scroller.current?.scrollTop === 0 && !busy) onTop();
  };
  useEffect(() => {
    if (!goTo || goTo.still) return;
    const index = indexOf(rows, goTo.id);
    setAtEnd(false);
    seen.current = undefined; // it is somewhere else
    virtualizer.scrollToIndex(index, { align: 'center' });
    scroller.current?.scrollIntoView({ block: 'nearest' }); // on a phone the log may be below what is on screen
    // eslint-disable-next-line react-hooks/exhaustive-deps -- as often as somebody goes there, and not as rows come
  }, [goTo]);
  const onCopy = (event: { clipboardData: DataTransfer | null; preventDefault: () => void }): void => {
    const range = selectedIn(scroller.current);
    if (!range || range[0] === range[1]) return; // a part of a line is as it is selected
    event.clipboardData?.setData('text/plain', copied(rows, range, notLoaded));
    event.preventDefault();
  };
  return (
    <div className="log-frame">
      <div
        className={`log-lines${wrap ? ' log-wrap' : ''}`}
        ref={scroller}
        onScroll={onScroll}
        onWheel={({ deltaY }) => deltaY < 0 && onUp()}
        onKeyDown={({ key }) => (key === 'ArrowUp' || key === 'PageUp' || key === 'Home') && onUp()}
        onCopy={onCopy}
        tabIndex={0}
        role="log"
        aria-label={label}
        aria-live="off"
        aria-busy={busy}
      >
        <div style={{ height, position: 'relative' }}>
          {virtualizer.getVirtualItems().map(({ index, start, key }) => {
            const row = rows.at(index);
            if (!row) return null;
            const here = goTo?.id === row.id ? ' log-here' : '';
            const { gap } = row;
            return (
              <div
                key={key}
                data-index={index}
                data-row={row.id}
                ref={wrap ? virtualizer.measureElement : undefined}
                className={`log-line ${row.entry ? lookOf(row.entry) : 'log-unloaded'}${here}`}
                style={{ ...(!wrap && { height: rowHeight }), transform: `translateY(${start}px)` }}
              >
                {row.entry && <Line entry={row.entry} search={search} named={named} times={times} href={times ? hrefOf(row.id) : undefined} onLink={onLink} />}
                {gap && (
                  <button type="button" className="log-more" disabled={busy} onClick={() => onGap(gap, 'first')}>
                    {t.notLoaded(gap.missing)}
                  </button>
                )}
              </div>
            );
          })}
        </div>
      </div>
      {!atEnd && (
        <button type="button" className="button log-end" onClick={() => setAtEnd(true)}>
          {t.toEnd}
        </button>
      )}
    </div>
  );
}

/** Where the reader is: the first line in sight, and how far below the upper edge it begins. */
interface Seen {
  readonly id: number;
  readonly top: number;
  readonly scrollTop: number;
}

/** The rows between which something is selected. */
function useSelected(log: { readonly current: HTMLElement | null }): readonly [number, number] | undefined {
  const [selected, setSelected] = useState<readonly [number, number]>();
  const look = useCallback(() => {
    const now = selectedIn(log.current);
    setSelected((before) => (before?.[0] === now?.[0] && before?.[1] === now?.[1] ? before : now));
  }, [log]);
  useEffect(() => {
    document.addEventListener('selectionchange', look);
    return () => document.removeEventListener('selectionchange', look);
  }, [look]);
  return selected;
}

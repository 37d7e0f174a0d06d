// The lines of a log as a list of which the document has what is in sight.

import { defaultRangeExtractor, useVirtualizer } from '@tanstack/react-virtual';
import { useCallback, useEffect, useLayoutEffect, useRef, useState, type ReactNode } from 'react';
import { Line, lookOf, notLoaded } from './Line.tsx';
import { indexOf, type Rows } from './rows.ts';
import { copied, selectedIn } from './selection.ts';
import { t } from './texts.ts';

const rowHeight = 18;

export interface LinesProps {
  readonly rows: Rows;
  readonly search: string;
  /** There are several containers, so that each line says whose it is. */
  readonly named: boolean;
  readonly wrap: boolean;
  readonly times: boolean;
  /** The row to show, as often as this changes. */
  readonly goTo?: { readonly id: number } | undefined;
}

/** Stays at the end while it is there, unless something is selected, and where the reader is otherwise. */
export function Lines({ rows, search, named, wrap, times, goTo }: LinesProps): ReactNode {
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
  // What is put in front moves nothing that is in sight.
  const top = rows.at(0)?.id ?? 0;
  const before = useRef(top);
  useLayoutEffect(() => {
    const element = scroller.current;
    if (element && top < before.current) {
      setAtEnd(false);
      element.scrollTop += indexOf(rows, before.current) * rowHeight; // of a filter's rows the numbers are not all
    }
    before.current = top;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- as often as something comes in front
  }, [top]);
  const onScroll = (): void => {
    const element = scroller.current;
    if (element) setAtEnd(element.scrollHeight - element.scrollTop - element.clientHeight < 2 * rowHeight);
  };
  useEffect(() => {
    if (!goTo) return;
    const index = indexOf(rows, goTo.id);
    setAtEnd(false);
    virtualizer.scrollToIndex(index, { align: 'center' });
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
      <div className={`log-lines${wrap ? ' log-wrap' : ''}`} ref={scroller} onScroll={onScroll} onCopy={onCopy} tabIndex={0} role="log" aria-label={t.log} aria-live="off">
        <div style={{ height, position: 'relative' }}>
          {virtualizer.getVirtualItems().map(({ index, start, key }) => {
            const row = rows.at(index);
            if (!row) return null;
            const here = goTo?.id === row.id ? ' log-here' : '';
            return (
              <div
                key={key}
                data-index={index}
                data-row={row.id}
                ref={wrap ? virtualizer.measureElement : undefined}
                className={`log-line ${row.entry ? lookOf(row.entry) : 'log-unloaded'}${here}`}
                style={{ ...(!wrap && { height: rowHeight }), transform: `translateY(${start}px)` }}
              >
                {row.entry ? <Line entry={row.entry} search={search} named={named} times={times} href={undefined} /> : '…'}
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

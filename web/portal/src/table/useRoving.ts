// One row of a table is in the order of the tab key; arrow keys, j and k go on from there.

import { useCallback, useState, type FocusEvent, type KeyboardEvent, type RefObject } from 'react';
import { singleKeys } from '../shortcuts/shortcuts.ts';

export interface Roving {
  /** The one to which the tab key leads. */
  readonly current: number;
  readonly onFocus: (event: FocusEvent<HTMLElement>) => void;
  readonly onKeyDown: (event: KeyboardEvent<HTMLElement>) => void;
}

/**
 * Rows have their number in `data-index`, and the link that leads on from them is what has the focus. `scrollTo` brings a row into
 * the document, of which only those in sight are there.
 */
export function useRoving(frame: RefObject<HTMLElement | null>, count: number, page: number, scrollTo: (index: number) => void): Roving {
  const [at, setAt] = useState(0);
  const onFocus = useCallback(({ target }: FocusEvent<HTMLElement>) => {
    const index = indexOf(target);
    if (index !== undefined) setAt(index);
  }, []);
  const onKeyDown = useCallback(
    (event: KeyboardEvent<HTMLElement>) => {
      const from = event.target instanceof Element ? indexOf(event.target) : undefined;
      if (from === undefined || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key.length === 1 && !singleKeys()) return;
      const steps: Partial<Record<string, number>> = { ArrowDown: from + 1, ArrowUp: from - 1, j: from + 1, k: from - 1, PageDown: from + page, PageUp: from - page, Home: 0, End: count - 1 };
      const to = steps[event.key];
      if (to === undefined) return;
      event.preventDefault();
      const index = Math.max(0, Math.min(count - 1, to));
      setAt(index);
      scrollTo(index);
      focusLink(frame.current, index, 5);
    },
    [frame, count, page, scrollTo],
  );
  return { current: Math.min(at, Math.max(0, count - 1)), onFocus, onKeyDown };
}

function indexOf(element: Element): number | undefined {
  const index = element.closest('[data-index]')?.getAttribute('data-index');
  return index === null || index === undefined ? undefined : Number(index);
}

/** In one of the next frames: the row may not be in the document yet. */
function focusLink(frame: HTMLElement | null, index: number, frames: number): void {
  const link = frame?.querySelector<HTMLElement>(`[data-index="${index}"] a`);
  if (link) link.focus({ preventScroll: true });
  else if (frames > 0) requestAnimationFrame(() => focusLink(frame, index, frames - 1));
}

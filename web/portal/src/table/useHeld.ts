// Rows that stay where they are while somebody points at them, goes through them by keys, or has scrolled.

import { useCallback, useEffect, useMemo, useRef, useState } from 'react';
import type { Row } from './rows.ts';

/** How long a pointer that does not move holds the rows, in milliseconds: it was left there. */
export const rests = 10_000;

export interface Held<R> {
  /** In the order in which they were when they began to be held, each as it is now. */
  readonly rows: readonly R[];
  /** The uids of those that are there no more, or no longer match. */
  readonly gone: ReadonlySet<string>;
  /** How many more there are, which are not among the rows yet. */
  readonly more: number;
}

/** The rows as they are shown: `held` in the order of an earlier moment, if there is one, else as they come. */
export function held<R extends Row>(rows: readonly R[], order: readonly R[] | undefined): Held<R> {
  if (!order) return { rows, gone: new Set(), more: 0 };
  const now = new Map(rows.map((row) => [row.uid, row]));
  const gone = new Set<string>();
  const shown = order.map((old) => {
    const row = now.get(old.uid);
    if (!row) gone.add(old.uid);
    return row ?? old;
  });
  return { rows: shown, gone, more: rows.length - (order.length - gone.size) };
}

export interface Hold {
  readonly onPointerMove: (event: { readonly pointerType: string }) => void;
  readonly onPointerLeave: () => void;
  /** A row has the keyboard's focus, or none has it any more. */
  readonly onFocused: (focused: boolean) => void;
  readonly onScrolled: (scrolled: boolean) => void;
  readonly release: () => void;
}

/** `key`: what is asked for; whoever asks for something else wants to see that. */
export function useHeld<R extends Row>(rows: readonly R[], key: string): Held<R> & Hold {
  const [order, setOrder] = useState<{ readonly key: string; readonly rows: readonly R[] }>();
  const latest = useRef({ key, rows });
  const pointed = useRef(false);
  const scrolled = useRef(false);
  const focused = useRef(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);

  useEffect(() => {
    latest.current = { key, rows };
  }, [key, rows]);
  useEffect(() => () => clearTimeout(timer.current), []);

  const settle = useCallback(() => {
    const holds = pointed.current || scrolled.current || focused.current;
    const now = latest.current; // also where a timer calls that was set when something else was asked for
    setOrder((before) => (!holds ? undefined : before?.key === now.key ? before : now));
  }, []);
  const onPointerLeave = useCallback(() => {
    clearTimeout(timer.current);
    pointed.current = false;
    settle();
  }, [settle]);
  const onPointerMove = useCallback(
    ({ pointerType }: { readonly pointerType: string }) => {
      if (pointerType !== 'mouse') return; // a finger points at nothing before it is there
      clearTimeout(timer.current);
      timer.current = setTimeout(onPointerLeave, rests);
      pointed.current = true;
      settle();
    },
    [settle, onPointerLeave],
  );
  const onScrolled = useCallback(
    (now: boolean) => {
      scrolled.current = now;
      settle();
    },
    [settle],
  );
  const onFocused = useCallback(
    (now: boolean) => {
      if (focused.current === now) return;
      focused.current = now;
      settle();
    },
    [settle],
  );
  const release = useCallback(() => {
    pointed.current = false;
    scrolled.current = false;
    setOrder(undefined);
  }, []);

  const shown = useMemo(() => held(rows, order?.key === key ? order.rows : undefined), [rows, order, key]);
  return { ...shown, onPointerMove, onPointerLeave, onFocused, onScrolled, release };
}

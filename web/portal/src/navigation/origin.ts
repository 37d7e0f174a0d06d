// From which page somebody came to the one on screen. Each entry of the browser's history has its own, so that Back and a reload keep it.

import { useMemo, useSyncExternalStore, type MouseEvent } from 'react';
import { parseView, type View } from '../view/view.ts';

/** What an entry's state has. */
interface Entry {
  /** It was on screen: whoever comes to it comes back. */
  readonly seen: true;
  /** The address's fragment of the page before; undefined: the page was opened by a link of elsewhere. */
  readonly from?: string;
  /** How many entries before this one that page's is. */
  readonly steps: number;
}

const listeners = new Set<() => void>();

const entry = (): Partial<Entry> => (history.state as Partial<Entry> | null) ?? {};
const pathOf = (hash: string): string => hash.split('?')[0] ?? '';

/** Gives an entry that is new its origin. `last` is the entry that was left, at the address `before`; returns the one that is here, and whether it was seen before. */
export function keepOrigin(last: { readonly here: Entry } | undefined, before: string): { readonly here: Entry; readonly seen: boolean } {
  const { seen = false, from, steps = 0 } = entry();
  if (seen) return { here: { seen, ...(from !== undefined && { from }), steps }, seen };
  // Another part of the same page: its origin is one entry further away.
  const same = last && pathOf(before) === pathOf(location.hash);
  const here: Entry = same ? { ...last.here, steps: last.here.steps + 1 } : last && !parseView(before).unknown ? { seen: true, from: before, steps: 1 } : { seen: true, steps: 0 };
  history.replaceState(here, '');
  for (const listener of [...listeners]) listener();
  return { here, seen };
}

/** The page from which somebody came; undefined: not from one of the portal. */
export function originOf(): View | undefined {
  const from = fromOf();
  return from === undefined ? undefined : parseView(from);
}

const fromOf = (): string | undefined => entry().from;

/** The same for a page, which may be there before its entry has been given its origin. */
export function useOrigin(): View | undefined {
  const from = useSyncExternalStore(follow, fromOf);
  return useMemo(() => (from === undefined ? undefined : parseView(from)), [from]);
}

function follow(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

/** What a click on a link to the origin does: what Back does, so that it is filtered and scrolled as it was. */
export function goBack(event: MouseEvent): void {
  const { steps = 0 } = entry();
  if (steps < 1 || event.button !== 0 || event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
  event.preventDefault();
  history.go(-steps);
}

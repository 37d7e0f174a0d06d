// Which row comes next, in whatever table. A table of which only some rows are in the document moves by itself (../table/useRoving.ts),
// and is asked first: what it has dealt with does not come here.

/** How far each key moves. */
export const steps: Partial<Record<string, number>> = { j: 1, k: -1, ArrowDown: 1, ArrowUp: -1 };

/** Moves the focus to another row; false: there is none, or an arrow key means something else where the focus is. */
export function moveRow(key: string): boolean {
  const step = steps[key];
  if (step === undefined) return false;
  const links = [...document.querySelectorAll<HTMLElement>('main :is(a.row-link, .mine-name a)')];
  const from = links.findIndex((link) => link === document.activeElement || rowOf(link)?.contains(document.activeElement));
  // Arrow keys scroll, and choose from what is open, until somebody is on a row.
  if (from < 0 && key.startsWith('Arrow')) return false;
  const to = from < 0 ? links.find(({ tabIndex }) => tabIndex === 0) : links[from + step];
  if (!to) return from >= 0; // at either end it stays
  to.focus();
  to.scrollIntoView({ block: 'nearest' });
  return true;
}

/** Goes to the row to which the tab key leads; false: there is none. */
export function firstRow(): boolean {
  const links = [...document.querySelectorAll<HTMLElement>('main a.row-link')];
  const to = links.find(({ tabIndex }) => tabIndex === 0) ?? links[0];
  to?.focus();
  return to !== undefined;
}

const rowOf = (link: Element): Element | null => link.closest('tr, li, [role="row"]');

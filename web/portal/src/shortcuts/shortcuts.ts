// The keys of the whole page. None of them is taken from somebody who types, from an open dialog, or from the browser.

import { moveRow } from './rows.ts';

const kept = 'kubecast.keys';

/** Keys of one character can be turned off: who speaks to the machine presses them by accident. */
export function singleKeys(): boolean {
  try {
    return localStorage.getItem(kept) !== 'off';
  } catch {
    return true; // the browser keeps nothing for this page
  }
}

export function setSingleKeys(on: boolean): void {
  try {
    if (on) localStorage.removeItem(kept);
    else localStorage.setItem(kept, 'off');
  } catch {
    // It stays as it is.
  }
}

const typing = (target: EventTarget | null): boolean =>
  target instanceof Element && target.closest('input, select, textarea, [contenteditable]:not([contenteditable="false"]), [role="textbox"], [role="dialog"]') !== null;

export const onMac = (): boolean => navigator.platform.startsWith('Mac');

export type Opened = 'help' | 'palette' | 'devtools';

/** Also while somebody types; but on a Mac, Ctrl-K in a field deletes to the end of the line. */
function isPalette({ key, target, ctrlKey, metaKey, altKey, shiftKey, isComposing }: KeyboardEvent): boolean {
  if (key.toLowerCase() !== 'k' || ctrlKey === metaKey || altKey || shiftKey || isComposing) return false;
  return metaKey || !typing(target) || !onMac();
}

/** What was typed for a palette that is still being loaded, and until when it is waited for. */
let ahead: { text: string; readonly until: number } | undefined;

/** In milliseconds. What could not be loaded by then takes no more keys from the page. */
const aheadFor = 10_000;

/** Gives the palette what was typed before it was there, once. */
export function giveTypedAhead(take: (text: string) => void): void {
  if (ahead?.text) take(ahead.text);
  ahead = undefined;
}

/** Keeps what is typed for the palette before it is there: its letters are no keys of the page's. */
function keepAhead(event: KeyboardEvent): boolean {
  const { key, ctrlKey, metaKey, altKey } = event;
  if (key === 'Escape' || ahead && ahead.until < Date.now()) ahead = undefined;
  if (!ahead || ctrlKey || metaKey || altKey || document.querySelector('dialog[open]')) return false;
  if (key === 'Backspace') ahead.text = ahead.text.slice(0, -1);
  else if (key.length === 1) ahead.text += key;
  else return key === 'Enter';
  return true;
}

/** Deals with a key that nothing nearer to where it was pressed has dealt with. */
export function onKey(event: KeyboardEvent, open: (what: Opened) => void): void {
  const { key, target } = event;
  if (isPalette(event)) {
    event.preventDefault(); // also where it is open: the browser would leave it for its own search
    if (document.querySelector('dialog[open]')) return;
    ahead ??= { text: '', until: Date.now() + aheadFor };
    open('palette');
    return;
  }
  if (keepAhead(event)) {
    event.preventDefault();
    return;
  }
  if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  if (document.querySelector('dialog[open]')) return;
  if (typing(target)) {
    // A select takes letters and arrows, and knows no use for these two.
    if (!(target instanceof HTMLSelectElement)) return;
    if (key === 'Escape') target.blur();
    if (key !== '?') return;
  }
  if (key.length === 1 && !singleKeys()) return;
  if (key === '?') open('help');
  else if (key === 'D') open('devtools');
  else if (key === '/') {
    const search = document.querySelector<HTMLInputElement>('main input[type="search"]');
    if (!search) return;
    search.select();
    search.focus();
  } else if (event.shiftKey || !moveRow(key)) return;
  event.preventDefault();
}

// Where somebody was on a page, for when they come back to it, and where the keyboard's focus goes on a page that they go to: to the row
// by which they left, or to the heading.

import { keepOrigin } from './origin.ts';

interface Place {
  /** How far each scroller was scrolled, by its class. */
  readonly tops: readonly (readonly [scroller: string, top: number])[];
  /** The address to which the row led. */
  readonly row: string | undefined;
}

/** So many pages are remembered. */
const most = 100;
/** So long is waited for what was there before, in milliseconds; what comes later would move who reads by then. */
const patience = 5_000;
/** Whoever does one of these looks at something else already. */
const taken = ['wheel', 'pointerdown', 'touchstart', 'keydown'] as const;

/** The links that are rows: of tables, and of the user's own jobs. */
const rows = 'a.row-link, .mine-name a';

const pathOf = (hash: string): string => hash.split('?')[0] ?? '';
const classOf = (element: Element): string => element.classList[0] ?? '';
const rowTo = (main: HTMLElement, address: string | undefined): HTMLElement | undefined =>
  address === undefined ? undefined : [...main.querySelectorAll<HTMLElement>(rows)].find((link) => link.getAttribute('href') === address);

/** Looks after the pages within `main` until it is told to stop. `of` tells when another one is gone to. */
export function followNavigation(main: HTMLElement, of: EventTarget = window): () => void {
  const places = new Map<string, Place>();
  let stop: () => void = () => undefined;
  let left: Place | undefined;
  let origin = keepOrigin(undefined, '');
  // It comes before any other page can be there: whatever is rendered from now on is that of the new address.
  const onLeave = (): void => {
    left = placeOn(main, location.hash);
  };
  const onHash = (event: Event): void => {
    const { hash } = location;
    const before = new URL((event as HashChangeEvent).oldURL).hash;
    const { seen: back } = (origin = keepOrigin(origin, before));
    if (pathOf(before) === pathOf(hash)) return void (left = undefined); // the same page, filtered otherwise
    places.delete(before);
    places.set(before, left ?? placeOn(main, hash));
    left = undefined;
    for (const [oldest] of places) if (places.size > most) places.delete(oldest);
    stop();
    stop = arrive(main, back ? places.get(hash) : undefined);
  };
  of.addEventListener('popstate', onLeave, true);
  of.addEventListener('hashchange', onHash, true);
  return () => {
    stop();
    of.removeEventListener('popstate', onLeave, true);
    of.removeEventListener('hashchange', onHash, true);
  };
}

function placeOn(main: HTMLElement, to: string): Place {
  const scrolled = [...main.querySelectorAll('[tabindex]')].filter(({ scrollTop }) => scrollTop > 0);
  const focused = document.activeElement?.closest(rows);
  return { tops: scrolled.map((one) => [classOf(one), one.scrollTop]), row: rowTo(main, to) ? to : (focused?.getAttribute('href') ?? undefined) };
}

/** Tries until the page is there, since much of it comes later. */
function arrive(main: HTMLElement, place: Place | undefined): () => void {
  const from = document.activeElement;
  const observer = new MutationObserver(() => attempt(false));
  const late = setTimeout(() => attempt(true), patience);
  const frame = setTimeout(() => {
    observer.observe(main, { childList: true, subtree: true });
    attempt(false);
  });
  function end(): void {
    observer.disconnect();
    clearTimeout(late);
    clearTimeout(frame);
    for (const one of taken) window.removeEventListener(one, end, true);
  }
  function attempt(last: boolean): void {
    const now = document.activeElement;
    const elsewhere = now !== null && now !== document.body && now !== from;
    const scrolled = elsewhere || scrollTo(main, place?.tops ?? [], last);
    const row = rowTo(main, place?.row);
    const target = elsewhere || (scrolled && (row ?? (place?.row === undefined || last ? main.querySelector<HTMLElement>('h1') : undefined)));
    if (target && target !== true) {
      if (target !== row) target.tabIndex = -1;
      target.focus({ preventScroll: true });
    }
    if (target || last) end();
  }
  for (const one of taken) window.addEventListener(one, end, true);
  return end;
}

/** Whether all of it is where it was; at last as near as can be. */
function scrollTo(main: HTMLElement, tops: Place['tops'], last: boolean): boolean {
  return tops
    .map(([name, top]) => {
      const scroller = [...main.querySelectorAll('[tabindex]')].find((one) => classOf(one) === name);
      if (!scroller || (!last && scroller.scrollHeight - scroller.clientHeight < top)) return false;
      if (scroller.scrollTop !== top) scroller.scrollTop = top;
      return true;
    })
    .every(Boolean);
}

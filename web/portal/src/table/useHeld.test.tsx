import { act, useLayoutEffect } from 'react';
import { createRoot, type Root } from 'react-dom/client';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { Row } from './rows.ts';
import { held, rests, useHeld, type Held, type Hold } from './useHeld.ts';

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });
const row = (uid: string, state = 'Running'): Row => ({ uid, name: uid, namespace: 'n', state, created: 0 });
const uids = (rows: readonly Row[]): string => rows.map(({ uid }) => uid).join('');

test('rows that are held keep their places and are told as they are now; others are counted', () => {
  const now = held([row('d'), row('c', 'Failed'), row('a')], [row('a'), row('b'), row('c')]);
  expect(uids(now.rows)).toBe('abc');
  expect(now.rows[2]?.state).toBe('Failed');
  expect([...now.gone]).toEqual(['b']);
  expect(now.more).toBe(1);
});

let root: Root;
let shown: Held<Row> & Hold;
const see = (now: typeof shown): void => {
  shown = now;
};
function Probe({ rows, of }: { rows: readonly Row[]; of: string }): null {
  const now = useHeld(rows, of);
  useLayoutEffect(() => see(now));
  return null;
}
const render = (rows: string, of = ''): void => act(() => root.render(<Probe rows={rows.split('').map((uid) => row(uid))} of={of} />));

beforeEach(() => {
  vi.useFakeTimers();
  root = createRoot(document.createElement('div'));
  render('ab');
});
afterEach(() => {
  act(() => root.unmount());
  vi.useRealTimers();
});

test('a pointer holds them until it leaves, or was left there', () => {
  act(() => shown.onPointerMove({ pointerType: 'mouse' }));
  render('cab');
  expect(uids(shown.rows)).toBe('ab');
  expect(shown.more).toBe(1);
  act(() => shown.onPointerLeave());
  expect(uids(shown.rows)).toBe('cab');
  act(() => shown.onPointerMove({ pointerType: 'mouse' }));
  render('dcab');
  expect(uids(shown.rows)).toBe('cab');
  act(() => void vi.advanceTimersByTime(rests));
  expect(uids(shown.rows)).toBe('dcab');
});

test('a finger holds nothing, scrolling does, and the word of what is new lets go', () => {
  act(() => shown.onPointerMove({ pointerType: 'touch' }));
  render('cab');
  expect(uids(shown.rows)).toBe('cab');
  act(() => shown.onScrolled(true));
  render('dcab');
  expect(uids(shown.rows)).toBe('cab');
  act(() => shown.release());
  expect(uids(shown.rows)).toBe('dcab');
});

test('whoever asks for something else sees that, and is held there again only once they move', () => {
  act(() => shown.onPointerMove({ pointerType: 'mouse' }));
  render('xy', 'other');
  expect(uids(shown.rows)).toBe('xy');
  render('zxy', 'other');
  expect(uids(shown.rows)).toBe('zxy');
  act(() => shown.onPointerMove({ pointerType: 'mouse' }));
  render('wzxy', 'other');
  expect(uids(shown.rows)).toBe('zxy');
});

test('a pointer that was left there before somebody asked for something else does not let go of what they have scrolled since', () => {
  act(() => shown.onPointerMove({ pointerType: 'mouse' }));
  render('xy', 'other');
  act(() => shown.onScrolled(true));
  render('zxy', 'other');
  expect(uids(shown.rows)).toBe('xy');
  act(() => void vi.advanceTimersByTime(rests));
  expect(uids(shown.rows)).toBe('xy');
});

test('rows that somebody goes through by keys stay where they are until the focus is elsewhere', () => {
  act(() => shown.onFocused(true));
  render('xab');
  expect([uids(shown.rows), shown.more]).toEqual(['ab', 1]);
  act(() => void vi.advanceTimersByTime(10 * rests));
  expect(uids(shown.rows)).toBe('ab');
  act(() => shown.onFocused(false));
  expect(uids(shown.rows)).toBe('xab');
});

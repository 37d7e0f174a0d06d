import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { Shortcuts } from './Shortcuts.tsx';

vi.mock('../palette/Palette.tsx', () => {
  throw new Error('offline');
});

let page: Rendered;
afterEach(() => page.unmount());

/** Returns whether the key was taken from the page. */
const press = (key: string, more: KeyboardEventInit = {}): boolean => {
  let taken = false;
  act(() => {
    taken = !document.body.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
  });
  return taken;
};
const alert = (): HTMLElement | null => page.element.querySelector('[role=alert]');
const said = (): Promise<void> =>
  vi.waitFor(async () => {
    await act(() => new Promise((resolve) => setTimeout(resolve)));
    expect(alert()?.textContent).toContain('could not be loaded');
  }, 60_000);

test('where the palette cannot be loaded it is said so, keys are the page\'s again, and it is tried again when it is wanted again', async () => {
  page = render(<Shortcuts />);
  expect([press('k', { ctrlKey: true }), press(' ')]).toEqual([true, true]);
  await said();
  expect([press(' '), press('Enter'), press('a')]).toEqual([false, false, false]);
  page.act(() => page.button('Close').click());
  expect(alert()).toBeNull();
  press('k', { ctrlKey: true });
  expect(alert()).toBeNull();
  await said();
  const first = alert();
  press('k', { ctrlKey: true }); // without having closed it
  await said();
  expect(alert()).not.toBe(first); // is announced anew
  expect(press(' ')).toBe(false);
});

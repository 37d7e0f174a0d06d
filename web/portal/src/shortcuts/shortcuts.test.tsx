import { act, useRef, useState, type ReactNode } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { Search } from '../filters/Search.tsx';
import { useRoving } from '../table/useRoving.ts';
import { Help } from './Help.tsx';
import { onKey, setSingleKeys, giveTypedAhead } from './shortcuts.ts';

let page: Rendered;
const help = vi.fn();
const takeTypedAhead = (): string => {
  let typed = '';
  giveTypedAhead((text) => (typed = text));
  return typed;
};
const listen = (event: KeyboardEvent): void => onKey(event, help);

beforeEach(() => document.addEventListener('keydown', listen));
afterEach(() => {
  document.removeEventListener('keydown', listen);
  page.unmount();
  setSingleKeys(true);
  takeTypedAhead();
  help.mockReset();
});

/** Returns whether the key was taken from the browser. */
function press(key: string, more: KeyboardEventInit = {}): boolean {
  let taken = false;
  act(() => {
    taken = !(document.activeElement ?? document.body).dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more }));
  });
  return taken;
}
const focused = (): string | undefined => document.activeElement?.textContent || document.activeElement?.id;
const show = (): void => {
  page = render(
    <main>
      <input type="search" id="search" />
      <select id="choice" />
      <div id="editor" contentEditable tabIndex={0} />
      <table>
        <tbody>
          {['a', 'b'].map((name) => (
            <tr key={name}>
              <td>
                <a className="row-link" href={`#${name}`} tabIndex={0}>{name}</a>
              </td>
              <td>
                <button type="button" id={`do-${name}`} />
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <ul>
        <li>
          <a className="row-link" href="#c" tabIndex={0}>c</a>
        </li>
      </ul>
    </main>,
  );
};
const focus = (id: string): void => act(() => page.element.querySelector<HTMLElement>(`#${id}`)?.focus());

test('j and k go through the rows of all tables of a page, and stay at either end', () => {
  show();
  const went = ['j', 'j', 'j', 'j', 'k', 'ArrowUp', 'k', 'ArrowDown'].map((key) => (press(key), focused()));
  expect(went).toEqual(['a', 'b', 'c', 'c', 'b', 'a', 'a', 'b']);
});

test('from a button within a row it goes on to the row after that', () => {
  show();
  focus('do-a');
  press('j');
  expect(focused()).toBe('b');
});

test.each(['search', 'choice', 'editor'])('whoever types keeps every key: %s', (id) => {
  show();
  focus(id);
  for (const key of ['j', 'k', '/', 'ArrowDown', ...(id === 'choice' ? [] : ['?'])]) expect(press(key)).toBe(false);
  expect(document.activeElement?.id).toBe(id);
  expect(help).not.toHaveBeenCalled();
});

test('from a select, which knows no use for them, ? opens the help and Escape leads back to the page', () => {
  show();
  focus('choice');
  expect(press('?')).toBe(true);
  expect(help.mock.calls).toEqual([['help']]);
  expect([press('Escape'), document.activeElement]).toEqual([false, document.body]);
  press('j');
  expect(focused()).toBe('a');
  focus('search');
  expect([press('Escape'), focused()]).toEqual([false, 'search']);
  setSingleKeys(false);
  focus('choice');
  expect(press('?')).toBe(false);
});

test('keys of the browser, of an input method and of an open dialog are not taken', () => {
  show();
  expect([press('j', { ctrlKey: true }), press('k', { altKey: true }), press('/', { altKey: true }), press('j', { isComposing: true }), press('ArrowDown')]).toEqual([false, false, false, false, false]);
  const dialog = document.createElement('dialog');
  page.element.append(dialog);
  dialog.showModal();
  expect(press('j')).toBe(false);
  dialog.close();
  expect(press('j')).toBe(true);
});

test('the palette opens from a field too, but for where Ctrl-K deletes; and no second one over an open dialog', () => {
  show();
  focus('search');
  expect([press('k', { ctrlKey: true }), press('K', { metaKey: true })]).toEqual([true, true]);
  expect(help.mock.calls).toEqual([['palette'], ['palette']]);
  const platform = vi.spyOn(navigator, 'platform', 'get').mockReturnValue('MacIntel');
  expect([press('k', { ctrlKey: true }), press('k', { metaKey: true })]).toEqual([false, true]);
  platform.mockRestore();
  help.mockReset();
  const dialog = document.createElement('dialog');
  page.element.append(dialog);
  dialog.showModal();
  expect(press('k', { ctrlKey: true })).toBe(true);
  expect(help).not.toHaveBeenCalled();
});

test('/ goes to the search, and ? tells the keys', () => {
  show();
  expect(press('?', { shiftKey: true })).toBe(true);
  expect(help.mock.calls).toEqual([['help']]);
  expect(press('/')).toBe(true);
  expect(document.activeElement?.id).toBe('search');
});

test('keys of one character can be turned off for who speaks; arrow keys stay', () => {
  show();
  setSingleKeys(false);
  expect(['j', '/', '?'].map((key) => press(key))).toEqual([false, false, false]);
  act(() => page.element.querySelector<HTMLElement>('a')?.focus());
  press('ArrowDown');
  expect(focused()).toBe('b');
});

/** As DataTable has it: only some of the rows are in the document. */
function Some(): ReactNode {
  const frame = useRef<HTMLDivElement>(null);
  const [first, setFirst] = useState(0);
  const { current, onFocus, onKeyDown } = useRoving(frame, 6, 15, (index) => setFirst(Math.min(4, index)));
  return (
    <div ref={frame} onFocus={onFocus} onKeyDown={onKeyDown}>
      {[first, first + 1].map((index) => (
        <div key={index} role="row" data-index={index}>
          <a className="row-link" href={`#${index}`} tabIndex={index === current ? 0 : -1}>{`row ${index}`}</a>
        </div>
      ))}
    </div>
  );
}

test('a table of which only some rows are there moves by itself: by one row for a key, to rows that are not there yet', async () => {
  page = render(<main><Some /></main>);
  const went: unknown[] = [];
  for (const key of ['j', 'j', 'j', 'j', 'k', 'ArrowDown']) {
    press(key);
    await act(() => new Promise((done) => setTimeout(done, 40)));
    went.push(focused());
  }
  expect(went).toEqual(['row 0', 'row 1', 'row 2', 'row 3', 'row 2', 'row 3']);
});

test('what is typed before the palette is loaded is typed into it, and is no key of the page; but not for ever', () => {
  const clock = vi.spyOn(Date, 'now').mockReturnValue(0);
  show();
  focus('search');
  press('k', { ctrlKey: true });
  for (const key of ['j', 'o', '/', 'Enter', 'Backspace', 'b']) expect(press(key)).toBe(true);
  expect([document.activeElement?.id, takeTypedAhead(), takeTypedAhead()]).toEqual(['search', 'job', '']);
  expect(press('b')).toBe(false);

  press('k', { ctrlKey: true });
  expect([press('x'), press('Escape'), press('y'), takeTypedAhead()]).toEqual([true, false, false, '']);

  press('k', { ctrlKey: true });
  clock.mockReturnValue(11_000);
  expect([press('x'), takeTypedAhead()]).toEqual([false, '']);
  clock.mockRestore();
});

test('the dialog of keys remembers that they are off, and tells when it is closed', () => {
  const closed = vi.fn();
  page = render(<Help onClose={closed} />);
  const box = page.element.querySelector<HTMLInputElement>('input');
  expect(page.element.querySelector('dialog')?.open).toBe(true);
  page.act(() => box?.click());
  expect(localStorage.getItem('kubecast.keys')).toBe('off');
  page.act(() => page.button('Close').click());
  expect(closed).toHaveBeenCalledOnce();
});

test.each(['Enter', 'ArrowDown'])('%s in the search of a table leads on to what was found', (key) => {
  page = render(
    <main>
      <Search value="" label="Search" />
      <a className="row-link" href="#a" tabIndex={-1}>a</a>
      <a className="row-link" href="#b" tabIndex={0}>b</a>
    </main>,
  );
  page.element.querySelector('input')?.focus();
  expect([press(key), focused()]).toEqual([true, 'b']);
});

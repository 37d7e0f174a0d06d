import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { PlainTable } from '../listing/PlainTable.tsx';
import { DataTable } from '../table/DataTable.tsx';
import type { Row, Tracked } from '../table/rows.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { densities, rowHeights } from './density.ts';

let page: Rendered;

beforeEach(() => {
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(900);
});
afterEach(() => {
  page.unmount();
  vi.restoreAllMocks();
  vi.unstubAllGlobals();
  localStorage.clear();
  tell(null); // nothing is left of what was not kept
});

const rows = Array.from({ length: 1_000 }, (_, n): Tracked<Row> => ({ uid: `${n}`, name: `row-${n}`, namespace: 'a', state: 'Running', created: n, changedAt: 0 }));
const columns = [{ id: 'name', header: 'Name', value: ({ name }: Row) => name, cell: ({ name }: Row) => name }];
const nothing = (): null => null;
const places = { offset: 0, total: 1_000, onFirst: vi.fn() };

function show(): void {
  page = render(
    <>
      <ViewMenu />
      <h2 id="plain">Plain</h2>
      <PlainTable labelledBy="plain" columns={columns} rows={rows.slice(0, 2)} keyOf={({ uid }) => uid} />
      <DataTable name="jobs" columns={columns} rows={rows} places={places} sort={{ column: 'name', descending: false }} onSort={nothing} narrowLine={nothing} asked="" href={({ uid }) => `#${uid}`}>
        none
      </DataTable>
    </>,
  );
  page.act(() => find('summary').click());
}
const find = (selector: string): HTMLElement => {
  const found = page.element.querySelector<HTMLElement>(selector);
  if (!found) throw new Error(`there is no ${selector}`);
  return found;
};
const marks = (): (string | null)[] => [...page.element.querySelectorAll('[data-density]')].map((one) => one.getAttribute('data-density'));
const tops = (): Record<string, string> => Object.fromEntries([...page.element.querySelectorAll<HTMLElement>('.table-body .table-row')].map(({ dataset, style }) => [dataset['name'] ?? '', style.transform]));
const choose = (name: string): void => page.act(() => [...page.element.querySelectorAll('label')].find(({ textContent }) => textContent === name)?.querySelector('input')?.click());
const chosen = (): string | undefined => [...page.element.querySelectorAll('label')].find((label) => label.querySelector('input')?.checked)?.textContent;
function tell(value: string | null): void {
  if (value !== null) localStorage.setItem('kubecast.density', value);
  act(() => void window.dispatchEvent(new StorageEvent('storage', { key: value === null ? null : 'kubecast.density', newValue: value })));
}

test('rows have the height of another density at once, and the one at the top stays there', () => {
  show();
  expect([find('.table-body').style.height, tops()['row-2']]).toEqual(['34000px', 'translateY(68px)']);
  find('.table-scroller').scrollTop = 100 * 34;
  page.act(() => void find('.table-scroller').dispatchEvent(new Event('scroll')));
  expect(tops()['row-100']).toBe('translateY(3400px)');
  choose('Compact');
  expect([find('.table-body').style.height, find('.table-scroller').scrollTop, marks()]).toEqual(['26000px', 2_600, ['compact', 'compact']]);
  page.act(() => void find('.table-scroller').dispatchEvent(new Event('scroll'))); // as browsers do before they paint
  expect([tops()['row-100'], tops()['row-122']]).toEqual(['translateY(2600px)', 'translateY(3172px)']); // as many as there is room for now
  expect(places.onFirst).toHaveBeenLastCalledWith(100);
});

test('it is remembered, and another tab has it at once', () => {
  show();
  choose('Compact');
  page.unmount();
  show();
  expect([chosen(), marks(), tops()['row-1']]).toEqual(['Compact', ['compact', 'compact'], 'translateY(26px)']);
  tell('comfortable');
  expect([chosen(), marks(), tops()['row-1']]).toEqual(['Comfortable', ['comfortable', 'comfortable'], 'translateY(34px)']);
});

test('where the browser keeps nothing it counts as long as the page is there, and what it does not know is none', () => {
  localStorage.setItem('kubecast.density', 'constructor');
  show();
  expect(chosen()).toBe('Comfortable');
  const full = (): never => {
    throw new DOMException('full', 'QuotaExceededError');
  };
  vi.stubGlobal('localStorage', { getItem: () => null, setItem: full });
  choose('Compact');
  page.unmount();
  show();
  expect([chosen(), marks()]).toEqual(['Compact', ['compact', 'compact']]);
});

test('the menu gives the focus back to its button when Escape closes it, and closes when the focus goes elsewhere', () => {
  show();
  const menu = page.element.querySelector('details');
  const link = find('a');
  for (const how of ['Escape', 'elsewhere']) {
    if (!menu?.open) page.act(() => find('summary').click());
    find('input').focus();
    expect(menu?.open).toBe(true);
    page.act(() => (how === 'Escape' ? void document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key: how, bubbles: true })) : link.focus()));
    expect([menu?.open, document.activeElement === (how === 'Escape' ? find('summary') : link)]).toEqual([false, true]);
  }
});

test('the heights by which rows are placed are those that they have', () => {
  const css = readFileSync(join(import.meta.dirname, '../theme/tokens.css'), 'utf8');
  const height = (block: string | undefined, token: string): number => Number(new RegExp(`--${token}: (\\d+)px;`).exec(block ?? '')?.[1]);
  const blocks = { comfortable: css.slice(css.indexOf(':root')), compact: css.slice(css.indexOf("[data-density='compact']")) };
  for (const one of densities) expect([one, height(blocks[one], 'row'), height(blocks[one], 'row-narrow')]).toEqual([one, rowHeights[one].wide, rowHeights[one].narrow]);
});

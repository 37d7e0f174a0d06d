import { afterEach, expect, test } from 'vitest';
import { render, type Rendered } from '../../../mock/render.ts';
import { cellsOf } from '../kinds/columns.ts';
import { parse, tableAt } from '../saved/saved.ts';
import { parseView, useView } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { hiddenColumns, shownColumns, withColumn } from './columns.ts';

let page: Rendered | undefined;
afterEach(() => {
  page?.unmount();
  page = undefined;
});

const columns = [{ id: 'name', header: 'Name' }, { id: 'state', header: 'State' }, { id: 'age', header: 'Age' }, { id: 'ip', header: 'IP', extra: true }];
const shown = (address: string): string => [...shownColumns(columns, address)].join();

test('columns that are not named in the address are hidden, the first is always there, and unknown ones are ignored', () => {
  expect([shown(''), shown('age'), shown('ip state'), shown('name')]).toEqual(['name,state,age', 'name,age', 'name,state,ip', 'name']);
  expect([shown('nonsense'), shown('nonsense ip'), shown('__proto__')]).toEqual(['name,state,age', 'name,ip', 'name,state,age']);
  expect(hiddenColumns(columns, 'age')).toEqual(['state', 'ip']);
});

test('the address says what is shown in the order of the table, and nothing of what is shown anyway', () => {
  expect([withColumn(columns, '', 'state'), withColumn(columns, 'age', 'state'), withColumn(columns, '', 'ip'), withColumn(columns, 'age', 'age')]).toEqual(['age', '', 'state age ip', 'name']);
  expect(withColumn(columns, 'nonsense age', 'ip')).toBe('age ip');
});

test('columns are chosen in the menu of the table, which keeps them in the address, and so in a saved view', () => {
  location.hash = '#jobs?q=train';
  function Shown() {
    useView();
    return <ViewMenu columns={columns} />;
  }
  page = render(<Shown />);
  page.act(() => page?.element.querySelector('summary')?.click());
  const boxes = (): Record<string, boolean> => Object.fromEntries([...(page?.element.querySelectorAll<HTMLLabelElement>('.columns label') ?? [])].map((label) => [label.textContent, label.querySelector('input')?.checked === true]));
  const toggle = (name: string): void => page?.act(() => [...(page?.element.querySelectorAll<HTMLLabelElement>('.columns label') ?? [])].find(({ textContent }) => textContent === name)?.querySelector('input')?.click());
  const steps = history.length;
  expect(boxes()).toEqual({ State: true, Age: true, IP: false });
  toggle('IP');
  toggle('State');
  expect([location.hash, boxes(), history.length]).toEqual(['#jobs?q=train&cols=age+ip', { State: false, Age: true, IP: true }, steps]); // no step to go back from
  const at = tableAt(parseView(location.hash)) ?? '';
  expect(parse(JSON.stringify([{ name: 'mine', at }]))).toEqual([{ name: 'mine', at: '#jobs?q=train&cols=age+ip' }]);
  page.act(() => page?.button('The usual columns').click());
  expect([location.hash, boxes()]).toEqual(['#jobs?q=train', { State: true, Age: true, IP: false }]);
});

test("a kind's own columns have ids that are short, that stand in an address, and that no other column has", () => {
  const definitions = ['Name', 'Internal-IP', 'Container Image(s)', 'Namespace', 'Up to date', 'up-to-date', '%', 'Age'].map((name, n) => ({ name, type: 'string', ...(n === 0 && { format: 'name' }), ...(n === 1 && { priority: 1 }) }));
  const found = cellsOf({ columnDefinitions: definitions, rows: [{ cells: ['a', '10.0.0.1'], object: { metadata: { uid: 'u' } } }] }, true);
  expect(found.columns.map(({ id }) => id)).toEqual(['internal-ip', 'container-image-s', 'own-namespace', 'up-to-date', 'own-up-to-date', 'own']);
  expect([found.columns[0]?.wide, found.columns[1]?.wide, found.rows.get('u')?.cells[0]]).toEqual([true, false, '10.0.0.1']);
  expect(cellsOf({ columnDefinitions: definitions }).columns.map(({ id }) => id)).not.toContain('internal-ip');
});

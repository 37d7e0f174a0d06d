import { KubecastProvider } from '@kubecast/sdk/react';
import type { Kubecast } from '@kubecast/sdk';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { Palette } from '../palette/Palette.tsx';
import { User } from '../session/user.ts';
import { parseView, setView } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { longestName, most, nameOf, parse, tableAt } from './saved.ts';

let kc: Kubecast;
let page: Rendered | undefined;

eachPage((made) => ({ kc } = made));
afterEach(() => {
  page?.unmount();
  page = undefined;
  vi.unstubAllGlobals();
  localStorage.clear();
  sessionStorage.clear();
});

const ana = 'kubecast.views.ana';
const show = (hash: string, user = 'ana'): void => {
  page?.unmount();
  location.hash = hash;
  page = render(
    <User value={user}>
      <ViewMenu />
    </User>,
  );
  page.act(() => all('summary')[0]?.click());
};
const all = <T extends HTMLElement = HTMLElement>(selector: string): T[] => [...(page?.element.querySelectorAll<T>(selector) ?? [])];
const field = (label: string): HTMLInputElement => {
  const found = all<HTMLInputElement>('input').find((one) => one.getAttribute('aria-label') === label);
  if (!found) throw new Error(`there is no ${label}`);
  return found;
};
const named = (label: string, name: string): void => {
  page?.type(field(label), name);
  page?.act(() => void field(label).form?.dispatchEvent(new Event('submit', { bubbles: true, cancelable: true })));
};
const save = (name: string): void => named('Name of this view', name);
const press = (name: string): void => page?.act(() => page?.button(name).click());
const change = (name: string): void => page?.act(() => all(`[aria-label="Change ${name}"]`)[0]?.click());
const links = (): Record<string, string | null> => Object.fromEntries(all('.saved-line a').map((one) => [one.querySelector('bdi')?.textContent ?? '', one.getAttribute('href')]));
const marked = (): (string | null | undefined)[] => all('.saved-line a[aria-current]').map((one) => one.querySelector('bdi')?.textContent);
const button = (): string | null | undefined => all('summary')[0]?.textContent;
const refused = (): string | null | undefined => all('[role=alert]')[0]?.textContent;
const kept = (key = ana): unknown => JSON.parse(localStorage.getItem(key) ?? '[]') as unknown;
/** What another tab has written. */
const written = (views: unknown, key: string | null = ana): void => {
  if (key !== null) localStorage.setItem(key, JSON.stringify(views));
  act(() => void window.dispatchEvent(new StorageEvent('storage', { key })));
};

test('a table is saved with all that its address holds, is marked while it is shown, and not when it is filtered otherwise', () => {
  show('#pods?cluster=west&ns=team-a&q=train&state=Running&sort=-restarts');
  save('  My   pods ');
  expect(links()).toEqual({ 'My pods': '#pods?cluster=west&ns=team-a&q=train&state=Running&sort=-restarts' });
  expect([marked(), button(), field('Name of this view').value]).toEqual([['My pods'], 'View: My pods', '']);
  page?.act(() => setView({ state: '' }));
  expect([marked(), button()]).toEqual([[], 'View']);
  page?.act(() => setView({ state: 'Running' }));
  expect(marked()).toEqual(['My pods']);
  // However the address was written.
  show('#pods?state=Running&sort=-restarts&q=train&ns=team-a&cluster=west');
  expect(marked()).toEqual(['My pods']);
  page?.act(() => all('.saved-line bdi')[0]?.click());
  expect(all('details[open], .saved')).toEqual([]);
});

test('it is renamed, overwritten with what is shown, and deleted, and the focus is not lost with what was pressed', () => {
  show('#jobs?ns=a');
  save('one');
  show('#jobs?ns=b');
  change('one');
  named('New name', 'two');
  expect([links(), document.activeElement]).toEqual([{ two: '#jobs?ns=a' }, all('ul')[0]]);
  change('two');
  press('Overwrite with what is shown');
  expect([links(), marked(), document.activeElement]).toEqual([{ two: '#jobs?ns=b' }, ['two'], all('ul')[0]]);
  change('two');
  expect(() => page?.button('Overwrite with what is shown')).toThrow('no button'); // it is what is shown
  press('Delete');
  expect([links(), kept(), document.activeElement]).toEqual([{}, [], all('ul')[0]]);
});

test('a name that another view has replaces nothing, and says so', () => {
  show('#jobs?ns=a');
  save('one');
  show('#jobs?ns=b');
  save('one');
  expect([links(), refused(), field('Name of this view').value]).toEqual([{ one: '#jobs?ns=a' }, 'It was not saved: another view has this name. That one can be overwritten.', 'one']);
  save('two');
  expect(refused()).toBe('');
  change('two');
  named('New name', 'one');
  expect([links(), refused()]).toEqual([{ one: '#jobs?ns=a', two: '#jobs?ns=b' }, 'It was not saved: another view has this name. That one can be overwritten.']);
});

test('what another tab saves or deletes shows at once, is not lost by what this one saves, and takes no word from who types', () => {
  show('#jobs?ns=a');
  save('one');
  page?.type(field('Name of this view'), 'thr');
  written([{ name: 'one', at: '#jobs?ns=a' }, { name: 'two', at: '#pods' }]);
  expect([links(), field('Name of this view').value]).toEqual([{ one: '#jobs?ns=a', two: '#pods' }, 'thr']);
  localStorage.setItem(ana, JSON.stringify([{ name: 'other', at: '#history' }])); // not told yet
  save('three');
  expect(kept()).toEqual([{ name: 'other', at: '#history' }, { name: 'three', at: '#jobs?ns=a' }]);
  change('other');
  localStorage.setItem(ana, '[]');
  page?.type(field('New name'), 'x');
  press('Rename');
  expect([links(), refused()]).toEqual([{}, 'It was not changed: another tab has deleted or renamed it.']);
  written([{ name: 'last', at: '#pods' }]);
  localStorage.clear();
  written(undefined, null);
  expect(links()).toEqual({});
});

test.each(['full', 'refused'])('a storage that is %s says so, and nothing looks saved', (how) => {
  show('#jobs?ns=a');
  const refuse = (): never => {
    throw new DOMException(how, how === 'full' ? 'QuotaExceededError' : 'SecurityError');
  };
  vi.stubGlobal('localStorage', { getItem: how === 'full' ? () => null : refuse, setItem: refuse });
  save('one');
  expect([links(), button(), refused(), field('Name of this view').value]).toEqual([{}, 'View', 'It was not saved: the browser keeps nothing, or nothing more, for this page.', 'one']);
});

test('there are fifty at most, whoever wrote there', () => {
  localStorage.setItem(ana, JSON.stringify(Array.from({ length: most + 10 }, (_, n) => ({ name: `v${n}`, at: `#jobs?ns=${n}` }))));
  show('#pods');
  expect(Object.keys(links())).toHaveLength(50);
  save('more');
  expect([Object.keys(links()).length, refused()]).toEqual([50, 'It was not saved: there are as many as there may be. Delete one first.']);
  change('v0');
  press('Delete');
  save('more');
  expect([links()['more'], Object.keys(links()).length]).toEqual(['#pods', 50]);
});

test('each user has their own, and of one whom nobody can name only the tab keeps them', () => {
  show('#jobs');
  save('one');
  show('#jobs', 'ben');
  expect([links(), button()]).toEqual([{}, 'View']);
  show('#jobs', '');
  expect(links()).toEqual({});
  save('secret');
  expect([links(), Object.keys(localStorage).join(), sessionStorage.getItem('kubecast.views.')]).toEqual([{ secret: '#jobs' }, ana, '[{"name":"secret","at":"#jobs"}]']);
});

test('a name is text, whatever is in it', () => {
  const name = '<img src=x onerror=alert(1)> & "Ann\u202e" 視圖';
  show('#jobs?ns=%3Cb%3E');
  save(name);
  expect([Object.keys(links()), all('img, b'), button()]).toEqual([[name], [], `View: ${name}`]);
  expect(all('summary bdi, .saved-line bdi')).toHaveLength(3); // what turns text around ends with it
  expect([nameOf('  \n '), nameOf('x'.repeat(200)).length, nameOf('e\u0301') === nameOf('\u00e9')]).toEqual(['', longestName, true]);
});

test.each([
  ['no list', '{"name":"a","at":"#jobs"}', []],
  ['no JSON', '[', []],
  ['no view', '[null,1,"a",{},{"name":"","at":"#jobs"},{"name":"a"},{"name":{},"at":"#jobs"}]', []],
  ['an address elsewhere', '[{"name":"a","at":"javascript:alert(1)"},{"name":"b","at":"//evil.example"},{"name":"c","at":"#javascript:alert(1)"}]', []],
  ['a page that is no table', '[{"name":"a","at":"#jobs/n/x"},{"name":"b","at":"#kinds"},{"name":"c","at":"#mine"},{"name":"d","at":"#"}]', []],
  ['a name twice', '[{"name":"a","at":"#jobs"},{"name":" a ","at":"#pods"}]', ['#jobs']],
  ['an older address', '[{"name":"a","at":"#jobs?state=Complete&sort=age"}]', ['#jobs?state=Succeeded']],
])('%s in the storage is not shown as a view', (_, text, expected) => {
  expect(parse(text).map(({ at }) => at)).toEqual(expected);
});

test.each(['#jobs', '#pods?ns=a', '#kinds/deployments.apps?ns=a', '#history?only=cluster&owner=me'])('%s is a table to be saved', (hash) => {
  expect(tableAt(parseView(hash))).toBe(hash);
});

test('the palette has them by their names, tells one from a page of the same address, and goes there', async () => {
  localStorage.setItem(ana, JSON.stringify([{ name: 'Everything', at: '#jobs' }, { name: 'OOM of team-a', at: '#history?ns=team-a&cause=OOMKilled' }]));
  location.hash = '#mine';
  page = render(
    <User value="ana">
      <KubecastProvider client={kc}>
        <Palette onClose={() => undefined} />
      </KubecastProvider>
    </User>,
  );
  const input = all<HTMLInputElement>('input')[0];
  const key = (name: string): void => page?.act(() => void input?.dispatchEvent(new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true })));
  const chosen = (): string | null | undefined => all('[aria-selected=true]').map(({ textContent }) => textContent).join('; ');
  const went = Array.from({ length: 8 }, () => (key('ArrowDown'), chosen()));
  expect(went).toEqual(['Overview ', 'Jobs ', 'Pods ', 'History ', 'Kinds ', 'Everything Jobs', 'OOM of team-a History · team-a', 'Mine ']);
  if (input) page.type(input, 'oom');
  await act(() => vi.advanceTimersByTimeAsync(10));
  expect(chosen()).toBe('OOM of team-a History · team-a');
  key('Enter');
  expect(location.hash).toBe('#history?ns=team-a&cause=OOMKilled');
});

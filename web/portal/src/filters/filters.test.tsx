import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { setView } from '../view/view.ts';
import { Folded } from './Folded.tsx';
import { NamespaceFilter, NamespaceInput } from './NamespaceFilter.tsx';
import { pods } from '../job/resources.ts';
import { StateFilter } from './StateFilter.tsx';
import { States } from './States.tsx';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;

eachPage((made) => ({ server, kc } = made));
const pass = (ms = 0): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
const filter = async (selected: string, visible?: readonly string[]): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <NamespaceFilter selected={selected} visible={visible} />
    </KubecastProvider>,
  );
  await pass();
};
/** The namespaces of the cluster, as the gateway tells them. */
const tell = async (...names: string[]): Promise<void> => {
  server.last.accept(...names.map((name) => frame('w0.added', 'e', { metadata: { name, uid: name } })), frame('w0.synced', 'e.w0-1', { resourceVersion: '1', count: names.length }));
  await pass(10);
};
const chips = (): (string | null)[] => [...page.element.querySelectorAll('button')].map(({ textContent }) => textContent.trim());
const options = (): (string | undefined)[] => [...page.element.querySelectorAll('option')].map(({ text }) => text);

afterEach(() => {
  page.unmount();
  setView({ namespace: '', search: '', state: '' });
});

test('states that no row is in take no room, but the one chosen stays, to be let go again', () => {
  page = render(<StateFilter states={['Failed', 'Running', 'Succeeded']} counts={new Map([['Running', 1_200]])} total={1_200} selected="Failed" loading={false} />);
  expect([...page.element.querySelectorAll('button')].map(({ textContent }) => textContent)).toEqual(['All 1,200', 'Failed 0', 'Running 1,200']);
  const failed = page.button('Failed 0');
  expect(failed.getAttribute('aria-pressed')).toBe('true');
  page.act(() => page.button('Running 1,200').click());
  expect(location.hash).toContain('state=Running');
  page.act(() => failed.click());
  expect(location.hash).not.toContain('state');
});

test('while rows are still to come it is not said that there are none', () => {
  const shown = (loading: boolean): (string | null)[] => {
    page = render(<StateFilter states={['Failed', 'Running']} counts={new Map()} total={0} selected="Failed" loading={loading} />);
    return chips();
  };
  expect(shown(true)).toEqual(['All', 'Failed']);
  page.unmount();
  expect(shown(false)).toEqual(['All 0', 'Failed 0']);
});

test('of states that nobody listed those that need somebody come first, and the chosen one stays', () => {
  const counts = new Map([['Running', 15_000], ['', 3], ['CrashLoopBackOff', 800], ['OOMKilled', 1], ['ImagePullBackOff', 801]]);
  page = render(<StateFilter counts={counts} total={16_605} selected="Evicted" loading={false} />);
  expect(chips()).toEqual(['All 16,605', 'OOMKilled 1', 'Evicted', 'ImagePullBackOff 801', 'CrashLoopBackOff 800', 'Running 15,000']);
});

/** The chips of a kind, when the gateway has counted these, and told as many as it was asked for. */
const states = async (counts: readonly (readonly [string, number])[], selected: string, found: number | undefined): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <States resource={pods} namespace="" search="" selected={selected} found={found} />
    </KubecastProvider>,
  );
  await pass();
  const limit = Number(/limit(?:=|%3D)([0-9]+)/.exec(server.last.url)?.[1] ?? Infinity);
  server.last.accept(frame('w0.counts', 'e.w0-1', { counts: counts.slice(0, limit).map(([value, count]) => ({ value, count })), resourceVersion: '1' }));
  await pass(10);
};
const many = (count: number): [string, number][] => Array.from({ length: count }, (_, n) => [`Step${n}`, 2_000 - n]);

test('the rarest state has its chip, before all that need nobody, and all are counted, however many states there are', async () => {
  await states([...many(100), ['OOMKilled', 1]], '', undefined);
  const sum = many(100).reduce((all, [, count]) => all + count, 0) + 1;
  expect(chips().slice(0, 2)).toEqual([`All ${sum.toLocaleString('en')}`, 'OOMKilled 1']);
  expect(chips()).toHaveLength(21);
});

test('of states that are too many to be counted the table tells what it knows, and nothing is said of what nobody knows', async () => {
  await states([...many(600), ['OOMKilled', 1]], '', 900_000);
  expect(chips()[0]).toBe('All 900,000');
});

test.each([[1, 'OOMKilled 1'], [undefined, 'OOMKilled']] as const)('a chosen state that was not counted has the number of rows, or none: %j', async (found, chip) => {
  await states([...many(600), ['OOMKilled', 1]], 'OOMKilled', found);
  expect(chips().slice(0, 2)).toEqual(['All', chip]);
});

test('a state that is a book is cut', () => {
  page = render(<StateFilter counts={new Map([['x'.repeat(100_000), 1]])} total={1} selected="" loading={false} />);
  expect(page.element.textContent.length).toBeLessThan(100);
});

test('the chosen namespace is in the list even when the cluster no longer has it', async () => {
  await filter('gone');
  await tell('b', 'a');
  expect(options()).toEqual(['All namespaces', 'a', 'b', 'gone']);
  expect(page.element.querySelector('select')?.value).toBe('gone');
});

test('a namespace in which nothing may be seen is no choice, whether namespaces may be listed or not', async () => {
  await filter('', ['a', 'c']);
  await tell('a', 'b', 'c');
  expect(options()).toEqual(['Your 2 namespaces', 'a', 'c']);
});

test('who may neither list namespaces nor knows of any types one; who knows of some chooses', async () => {
  await filter('');
  server.last.refuse(403, {}, JSON.stringify({ message: 'namespaces is forbidden' }));
  await pass();
  server.last.refuse(403); // and of what was asked for it was this
  await pass();
  expect(page.element.querySelector('input')).not.toBeNull();
  page.unmount();
  await filter('', ['a']);
  expect(options()).toEqual(['Your namespace', 'a']);
});

test('a namespace is typed in peace: nothing is asked for until it is submitted', () => {
  page = render(<NamespaceInput selected="" />);
  const input = page.element.querySelector('input');
  if (!input) throw new Error('no input');
  page.type(input, ' team-a ');
  expect(location.hash).not.toContain('ns=');
  page.act(() => page.button('Show').click());
  expect(location.hash).toContain('ns=team-a');
});

test.each([[true, ['Filters (2)']], [false, []]])('on a phone filters are behind one button, which says how many are set: %s', (narrow, buttons) => {
  const media = vi.spyOn(window, 'matchMedia').mockImplementation((query) => ({ matches: narrow, media: query, addEventListener: vi.fn(), removeEventListener: vi.fn() }) as unknown as MediaQueryList);
  page = render(
    <Folded set={2}>
      <select aria-label="State" />
    </Folded>,
  );
  expect([chips(), page.element.querySelector('select') === null]).toEqual([buttons, narrow]);
  if (narrow) page.act(() => page.button('Filters (2)').click());
  expect(page.element.querySelector('select')).not.toBeNull();
  media.mockRestore();
});

import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import type { ScriptedFetch, ScriptedRequest } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import type { Kind } from '../kinds/discovery.ts';
import { onKey } from '../shortcuts/shortcuts.ts';
import { Palette } from './Palette.tsx';
import { parseView } from '../view/view.ts';
import { findPast, kindsFor, questionOf } from './search.ts';

let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
const closed = vi.fn();

eachPage((made) => ({ server, kc } = made));
beforeEach(() => {
  closed.mockReset();
  location.hash = '#mine?ns=team-a';
  page = render(
    <KubecastProvider client={kc}>
      <Palette onClose={closed} />
    </KubecastProvider>,
  );
});
afterEach(() => page.unmount());

const pass = async (ms = 0): Promise<void> => {
  for (let left = ms; left >= 0; left -= 100) await act(() => vi.advanceTimersByTimeAsync(Math.min(left, 100)));
};
const input = (): HTMLInputElement => {
  const found = page.element.querySelector('input');
  if (!found) throw new Error('no input');
  return found;
};
const type = async (text: string): Promise<void> => {
  page.type(input(), text);
  await pass(500);
};
const asked = (kind: string): ScriptedRequest[] => server.requests.filter(({ url }) => url.includes(`/${kind}?`) && url.includes('search=') && !url.startsWith('/history'));
const askedPast = (): ScriptedRequest[] => server.requests.filter(({ url }) => url.startsWith('/history/') && url.includes('search='));
const answerPast = async (items: readonly object[], status = 200): Promise<void> => {
  askedPast().at(-1)?.refuse(status, {}, JSON.stringify({ items, continue: '' }));
  await pass(10);
};
const gone = (name: string, uid: string): object => ({ name, namespace: 'team-a', uid, state: 'Deleted', since: '2026-01-02T03:04:05Z', endedAt: '2026-01-02T03:04:05Z', createdAt: '2026-01-02T03:00:00Z', durations: { Failed: 1 } });
const answer = async (kind: string, names: readonly string[], status = 200): Promise<void> => {
  asked(kind).at(-1)?.refuse(status, {}, JSON.stringify({ items: names.map((name) => ({ metadata: { name, namespace: 'team-a' } })) }));
  await pass(10);
};
const press = (key: string, more: KeyboardEventInit = {}): void => act(() => void input().dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true, ...more })));
const options = (): (string | null | undefined)[] => [...page.element.querySelectorAll('[role="option"]')].map(({ firstElementChild }) => firstElementChild?.textContent);
const active = (): string | null | undefined => document.getElementById(input().getAttribute('aria-activedescendant') ?? '')?.firstElementChild?.textContent;
const status = (): string | null | undefined => page.element.querySelector('[role="status"]')?.textContent;

test('nothing is asked for before somebody types, and then once for what they typed in the end', async () => {
  await pass(1_000);
  expect(options()).toEqual(['Mine', 'Overview', 'Jobs', 'Pods', 'History', 'Kinds']);
  for (const text of ['t', 'tr', 'tra']) page.type(input(), text);
  await pass(500);
  expect(asked('jobs').map(({ url }) => new URL(url, 'http://x').searchParams.get('search'))).toEqual(['tra']);
  expect(asked('jobs')[0]?.url).toContain('limit=10');
});

test('what was typed while it was loaded is searched for', async () => {
  page.unmount();
  const press = (key: string, more: KeyboardEventInit = {}): void => onKey(new KeyboardEvent('keydown', { key, cancelable: true, ...more }), () => undefined);
  press('k', { ctrlKey: true });
  for (const key of 'pods') press(key);
  page = render(
    <KubecastProvider client={kc}>
      <Palette onClose={closed} />
    </KubecastProvider>,
  );
  await pass(500);
  expect([input().value, active()]).toEqual(['pods', 'Pods']);
});

test('what is found comes all at once, so that nothing moves under who is about to press Enter; ten of each at most', async () => {
  await type('train');
  await answer('pods', ['train-pod']);
  expect(options()).toEqual([]);
  expect(status()).toBe('Searching…');
  await answer('jobs', Array.from({ length: 12 }, (_, n) => `train-${n}`));
  expect(options()).toHaveLength(11);
  expect(active()).toBe('train-0');
});

test('an answer to what was typed before is not shown for what is typed now', async () => {
  await type('za');
  const [before] = asked('jobs');
  await answer('pods', ['za-pod']);
  expect(asked('jobs').map(({ aborted }) => aborted)).toEqual([false]);
  await type('zb');
  expect([...asked('jobs'), ...askedPast()].map(({ aborted }) => aborted)).toEqual([true, false, true, false]);
  await answer('pods', ['zb-pod']);
  await answer('jobs', []);
  before?.refuse(200, {}, JSON.stringify({ items: [{ metadata: { name: 'za-job', namespace: 'n' } }] }));
  await pass(10);
  await answerPast([]);
  expect(options()).toEqual(['zb-pod']);
  expect(status()).toBe('1 result');
  await type('zbx');
  expect(options()).toEqual([]);
});

test('arrow keys go round, Enter goes there and closes, and not while an input method is at work', async () => {
  await type('train');
  await answer('jobs', ['train']);
  await answer('pods', ['train-pod']);
  press('ArrowUp');
  expect(active()).toBe('train-pod');
  expect(page.element.querySelectorAll('[aria-selected="true"]')).toHaveLength(1);
  press('Enter', { isComposing: true });
  expect(closed).not.toHaveBeenCalled();
  press('ArrowDown');
  press('Enter');
  expect(location.hash).toBe('#jobs/team-a/train?ns=team-a');
  expect(closed).toHaveBeenCalledOnce();
});

test('jobs that are gone are found beside those that live, told apart, behind them, and each run of a name leads to its own page', async () => {
  await type('train');
  expect(new URL(askedPast()[0]?.url ?? '', 'http://x').searchParams.toString()).toBe('state=Deleted&search=train&limit=10');
  await answer('jobs', ['train']);
  await answer('pods', []);
  expect(options()).toEqual(['train']);
  expect(status()).toBe('Searching…');
  await answerPast([gone('train', 'u-2'), gone('train', 'u-1')]);
  expect(options()).toEqual(['train', 'train', 'train']);
  expect(active()).toBe('train');
  const group = page.element.querySelector('[role="group"][aria-label="Jobs that are gone"]');
  expect(group?.querySelectorAll('[role="option"]')).toHaveLength(2);
  expect(group?.textContent).toContain('team-a · Failed · ');
  press('ArrowUp');
  press('Enter');
  expect(location.hash).toBe('#jobs/team-a/train@u-1?ns=team-a');
});

test('where no history is kept, or it may not be seen, nothing is missing; one that fails is told', async () => {
  await type('train');
  await answer('jobs', ['train']);
  await answer('pods', []);
  await answerPast([], 404);
  expect(status()).toBe('1 result');
  await type('trains');
  await answer('jobs', ['trains']);
  await answer('pods', []);
  await answerPast([], 503);
  expect(status()).toBe('Could not search: Jobs that are gone');
});

test('of one kind by its name only that is looked through', async () => {
  expect(await findPast({ name: '', kc }, questionOf('po web', kinds, ''), parseView(''), 'x', new AbortController().signal)).toEqual({ groups: [], failed: [] });
  expect(askedPast()).toEqual([]);
});

test('a kind that cannot be looked through is told, and the others are there', async () => {
  await type('train');
  await answer('jobs', [], 503);
  await answer('pods', ['train-pod']);
  await answerPast([]);
  expect(options()).toEqual(['train-pod']);
  expect(status()).toBe('Could not search: Job');
});

const kind = (plural: string, group: string, name: string, ...shortNames: string[]): Kind => ({ id: group ? `${plural}.${group}` : plural, group, version: 'v1', plural, kind: name, namespaced: true, shortNames });
const kinds = [kind('deployments', 'apps', 'Deployment', 'deploy'), kind('pods', '', 'Pod', 'po'), kind('jobs', 'batch', 'Job')];

test.each([
  ['deploy web', '', 'web', ['deployments.apps']],
  ['po web', '', 'web', ['pods']],
  ['deploy', '', 'deploy', ['jobs.batch', 'pods']], // a job may be called so
  ['my web', '', 'my web', ['jobs.batch', 'pods']],
  [' web ', 'deployments.apps', 'web', ['jobs.batch', 'pods', 'deployments.apps']],
  ['web', 'pods', 'web', ['jobs.batch', 'pods']], // not twice
])('%j on the page of %j asks for %j', (typed, shown, text, of) => {
  const question = questionOf(typed, kinds, shown);
  expect([question.text, question.kinds.map(({ id }) => id)]).toEqual([text, of]);
});

test('kinds that are pages are not there twice', () => {
  expect(kindsFor('o', kinds).map(({ id }) => id)).toEqual(['deployments.apps']);
});

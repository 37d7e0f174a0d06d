import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { followNavigation } from './navigation.ts';
import { goBack, originOf } from './origin.ts';

let main: HTMLElement;
let stop: () => void;
/** A simulated window has events of its own where a browser has none. */
let events: EventTarget;

const table = '<h1>Jobs</h1><div class="table-scroller x" tabindex="0"><a class="row-link" href="#jobs/n/a">a</a><a class="row-link" href="#jobs/n/b">b</a></div>';
const job = '<h1>b</h1>';

beforeEach(() => {
  vi.useFakeTimers();
  history.replaceState(null, '', '#jobs?q=x');
  main = document.createElement('main');
  document.body.append(main);
  main.innerHTML = table;
  events = new EventTarget();
  stop = followNavigation(main, events);
});
afterEach(() => {
  stop();
  main.remove();
  vi.useRealTimers();
});

const scroller = (): Element => main.querySelector('.table-scroller') ?? main;
/** As a browser does it: the entry is there before the event. */
const go = (to: string, seen: boolean): void => {
  const oldURL = location.href;
  history.replaceState(seen ? { seen: true } : null, '', to);
  events.dispatchEvent(new Event('popstate'));
  events.dispatchEvent(Object.assign(new Event('hashchange'), { oldURL, newURL: location.href }));
};
const render = async (html: string): Promise<void> => {
  main.innerHTML = html;
  Object.defineProperty(scroller(), 'scrollHeight', { value: 5_000 });
  await vi.advanceTimersByTimeAsync(10);
};
const focused = (): string | null | undefined => document.activeElement?.textContent;

test('the focus goes to the heading of a page that is gone to, however late it comes', async () => {
  go('#jobs/n/b', false);
  await render('<p>Loading…</p>');
  expect(document.activeElement).toBe(document.body);
  await render(job);
  expect(focused()).toBe('b');
});

test('Back returns to the row by which the page was left, and to where it was scrolled', async () => {
  scroller().scrollTop = 800;
  go('#jobs/n/b', false);
  await render(job);
  go('#jobs?q=x', true);
  await render('<h1>Jobs</h1>');
  expect(document.activeElement).toBe(document.body); // its rows are not there yet
  await render(table);
  expect([focused(), document.activeElement?.getAttribute('href'), scroller().scrollTop]).toEqual(['b', '#jobs/n/b', 800]);
});

test("Back to a user's own jobs returns to the one that was opened, also when it stands elsewhere by then", async () => {
  const of = (name: string): string => `<li><span class="mine-name"><a href="#jobs/n/${name}@${name}">${name}</a></span></li>`;
  go('#mine', false);
  await render(`<h1>Your jobs</h1><ul>${of('a')}${of('b')}</ul>`);
  go('#jobs/n/b@b', false);
  await render(job);
  go('#mine', true);
  await render(`<h1>Your jobs</h1><ul>${of('a')}</ul><ul>${of('b')}</ul>`);
  expect(document.activeElement?.getAttribute('href')).toBe('#jobs/n/b@b');
});

test('a row that is gone does not keep the focus from the heading for ever', async () => {
  go('#jobs/n/b', false);
  await render(job);
  go('#jobs?q=x', true);
  await render('<h1>Jobs</h1>');
  await vi.advanceTimersByTimeAsync(10_000);
  expect(focused()).toBe('Jobs');
});

test('the same page by a link begins at its top, and other filters move nothing', async () => {
  scroller().scrollTop = 800;
  go('#jobs/n/b', false);
  await render(job);
  go('#jobs?q=x', false);
  await render(table);
  expect([focused(), scroller().scrollTop]).toEqual(['Jobs', 0]);
  (document.activeElement as HTMLElement).blur();
  go('#jobs?q=y', false);
  await vi.advanceTimersByTimeAsync(10_000);
  expect(document.activeElement).toBe(document.body);
});

test('whoever does something meanwhile is left alone', async () => {
  go('#jobs/n/b', false);
  window.dispatchEvent(new Event('wheel'));
  await render(job);
  expect(document.activeElement).toBe(document.body);
  go('#jobs/n/a', false);
  await render('<input id="i"><p></p>');
  main.querySelector('input')?.focus();
  main.append(document.createElement('h1'));
  await vi.advanceTimersByTimeAsync(10_000);
  expect(document.activeElement?.id).toBe('i');
});

test('an entry keeps from where somebody came, however many parts of a page they have gone through', async () => {
  const back = vi.spyOn(history, 'go').mockReturnValue(undefined);
  const click = (more: MouseEventInit = {}): boolean => {
    const event = new MouseEvent('click', { cancelable: true, ...more });
    goBack(event as never);
    return event.defaultPrevented;
  };
  expect([originOf(), click()]).toEqual([undefined, false]); // the page was opened by a link
  go('#jobs/n/b', false);
  expect([originOf()?.page, originOf()?.search, originOf()?.object, click(), click({ ctrlKey: true })]).toEqual(['jobs', 'x', undefined, true, false]);
  go('#jobs/n/b?line=b-0/main/2026-01-31T09:00:00Z', false);
  const { state } = history as { readonly state: unknown };
  go('#pods/n/b-0', false);
  expect([originOf()?.page, originOf()?.object?.name]).toEqual(['jobs', 'b']);
  history.replaceState(state, '', '#jobs/n/b?line=b-0/main/2026-01-31T09:00:00Z'); // Back
  expect([originOf()?.search, click()]).toEqual(['x', true]);
  expect(back.mock.calls).toEqual([[-1], [-2]]);
  back.mockRestore();
  await vi.advanceTimersByTimeAsync(10);
});

test('an address that leads nowhere, such as one with a token, is no page to go back to', () => {
  history.replaceState({ seen: true, steps: 0 }, '', '#token=secret');
  go('#jobs/n/b', false);
  expect([originOf(), JSON.stringify(history.state)]).toEqual([undefined, expect.not.stringContaining('secret')]);
});

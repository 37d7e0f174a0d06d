import { act } from 'react';
import { expect, test, vi } from 'vitest';
import { choose, eachLog, event, level, line, lines, open, page, pass, tell } from './logpage.tsx';

eachLog();

test('what a line would do to a terminal or a page is not done', async () => {
  await open(() => line('\x1b[31mred\x1b[0m <img src=x onerror=alert(1)>'), () => line('\r 10%\r100%'), () => line('\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07'));
  expect(page.element.querySelector('.ansi-red')?.textContent).toBe('red');
  expect(lines().map((text) => text.replace(/^\S+ /, ''))).toEqual(['red <img src=x onerror=alert(1)>', '100%', 'link']);
  expect(page.element.querySelectorAll('.log-text img, .log-text a')).toHaveLength(0);
});

test('a line that is selected by itself begins with its text: nothing beside its time can be selected', async () => {
  await open(() => line('loss 1'));
  const shown = page.element.querySelector('.log-line');
  shown?.querySelector('time')?.remove(); // of which a style says that it is not selected
  expect(shown?.textContent).toBe('loss 1');
});

test('a time is told by the clock that was chosen, in whatever zone the node lives, and can be left out', async () => {
  await open(() => line('a', '2026-11-27T18:00:00.5+08:00'));
  const local = new Intl.DateTimeFormat('sv-SE', { timeStyle: 'medium' }).format(Date.parse('2026-11-27T10:00:00Z'));
  expect(lines()).toEqual([`${local} a`]);
  page.act(() => page.button('Times').click());
  expect(lines()).toEqual(['a']);
  page.unmount();
  await open(() => line('b'));
  expect(lines().every((text) => /^[ab]$/.test(text))).toBe(true); // it is remembered, whichever of them is still shown
});

test.each([[true, undefined, true], [false, undefined, false], [true, false, false]])('on a phone (%s) lines are wrapped, unless somebody has chosen (%s), and what is rarely used is folded', async (narrow, chosen, wraps) => {
  if (chosen !== undefined) localStorage.setItem('kubecast.log', JSON.stringify({ wrap: chosen }));
  vi.spyOn(window, 'matchMedia').mockImplementation((media) => Object.assign(new EventTarget(), { matches: narrow, media }) as unknown as MediaQueryList);
  await open(() => line('a'));
  const tools = (): string[] => [...page.element.querySelectorAll('.log-bar > button')].map(({ textContent }) => textContent);
  expect(tools()).toEqual(narrow ? ['Options', 'Pause'] : ['Wrap', 'Times', 'Download', 'Pause']);
  if (narrow) page.act(() => page.button('Options').click());
  expect(page.button('Wrap').getAttribute('aria-pressed')).toBe(String(wraps));
});

test('lines are told by their level, and what a node says instead of a log is none of them', async () => {
  await open(() => line('INFO fine'), () => line('ERROR bad'), () => line('  at x'), () => event('reset', { reason: 'unavailable', message: 'unable to retrieve container logs for containerd://1' }));
  expect(page.element.querySelector('.log-reset')?.textContent).toBe('— this log cannot be read; the node says: unable to retrieve container logs for containerd://1 —');
  choose('error');
  expect(lines().filter((text) => !text.startsWith('—')).map((text) => text.replace(/^\S+ /, ''))).toEqual(['ERROR bad', '  at x']);
  expect(page.element.querySelector('.log-count')?.textContent).toBe('3 of 4 lines · 1 line without a level stays with the one before it');
});

test('that lines without a level stay in view is said, also where none is hidden', async () => {
  await open(() => line('WARN a'), () => line('loss 1'), () => line('loss 2'));
  const count = (): string | null | undefined => page.element.querySelector('.log-count')?.textContent;
  expect(count()).toBe('');
  choose('warning');
  expect(count()).toBe('2 lines without a level stay with the one before them');
  choose('');
  expect(count()).toBe('');
});

test("a level that was chosen of one page hides no lines on another's, and is there when somebody goes back", async () => {
  location.hash = '#jobs/n/a';
  await open(() => line('INFO fine'));
  choose('error');
  page.unmount();
  location.hash = '#jobs/n/b';
  await open(() => line('INFO fine'));
  expect(level()?.value).toBe('');
  page.unmount();
  location.hash = '#jobs/n/a?tab=pods';
  await open(() => line('INFO fine'));
  expect(level()?.value).toBe('error');
});

test('a log of which no line has come yet says so beside that its container has started', async () => {
  await open(() => event('started', { restarts: 0 }));
  expect([...page.element.querySelectorAll('.job-none, .log-line')].map(({ textContent }) => textContent)).toEqual(['Nothing was written yet.', '— started —']);
  await tell(line('loss 1'));
  expect(page.element.querySelector('.job-none')).toBeNull();
});

test('a search goes from match to match', async () => {
  await open(() => line('loss 1'), () => line('other'), () => line('LOSS 2'));
  const input = page.element.querySelector('input');
  if (input) page.type(input, 'loss');
  await pass();
  expect([...page.element.querySelectorAll('mark')].map(({ textContent }) => textContent)).toEqual(['loss', 'LOSS']);
  const count = (): string => page.element.querySelector('.log-count')?.textContent ?? '';
  expect(count()).toBe('– of 2');
  const press = (name: string): void => page.act(() => page.element.querySelector<HTMLButtonElement>(`button[aria-label="${name}"]`)?.click());
  press('Previous match');
  expect(count()).toBe('2 of 2');
  press('Previous match');
  expect(count()).toBe('1 of 2');
  press('Previous match');
  expect(count()).toBe('2 of 2');
  expect(page.element.querySelector('.log-here')?.textContent).toContain('LOSS 2');
});

/** Selects from one row into another, as a person who drags. */
const select = (from: number, to: number): void => {
  const rows = [...page.element.querySelectorAll('.log-text')];
  selectUpTo(from, rows[to]?.firstChild ?? document, 1);
};
const selectUpTo = (from: number, node: Node, offset: number): void => {
  const range = document.createRange();
  range.setStart(page.element.querySelectorAll('.log-text')[from]?.firstChild ?? document, 1);
  range.setEnd(node, offset);
  document.getSelection()?.removeAllRanges();
  document.getSelection()?.addRange(range);
  document.dispatchEvent(new Event('selectionchange'));
};

const copy = (): string => {
  const data = new DataTransfer();
  const copied = new Event('copy', { bubbles: true, cancelable: true });
  Object.defineProperty(copied, 'clipboardData', { value: data });
  page.element.querySelector('.log-lines')?.dispatchEvent(copied);
  return data.getData('text/plain');
};

test('lines that are selected by a triple click are copied without the next one, before which the selection ends', async () => {
  await open(() => line('Traceback'), () => line('CUDA out of memory'), () => line('\x1b[31mKilled\x1b[0m'));
  const ends: readonly ((next: Element) => readonly [Node, number])[] = [
    (next) => [next, 0],
    (next) => [next.querySelector('.log-text') ?? next, 0],
    (next) => [next.querySelector('.log-text span')?.firstChild ?? next, 0],
  ];
  for (const end of ends) {
    const next = [...page.element.querySelectorAll('[data-row]')].find(({ textContent }) => textContent.includes('Killed')) ?? document.body;
    act(() => selectUpTo(0, ...end(next)));
    expect(copy()).toBe('Traceback\nCUDA out of memory\n');
    act(() => selectUpTo(1, ...end(next)));
    expect(copy()).toBe(''); // of one line the browser copies what is selected
  }
});

test('what is copied is whole lines with their ends, and a selection stays when new lines come', async () => {
  await open(() => line('first'), () => line('\x1b[32msecond\x1b[0m'), () => line('third'));
  act(() => select(0, 1));
  expect(copy()).toBe('first\nsecond\n');
  await tell(...Array.from({ length: 300 }, (_, n) => line(`more ${n}`)));
  expect(document.getSelection()?.isCollapsed).toBe(false);
  expect(copy()).toBe('first\nsecond\n');
});

test('several containers are shown merged or side by side, as the address says, each with its exit code', async () => {
  location.hash = '#pods/n/p';
  const sides = (): string[] => [...page.element.querySelectorAll('.log-column')].map((column) => `${column.querySelector('h2')?.textContent.trim()}: ${[...column.querySelectorAll('.log-text')].map(({ textContent }) => textContent).join()}`);
  await open(() => event('started', { restart: 0 }), () => event('started', { restart: 0 }, 'side'), () => line('a'), () => line('b', undefined, 'side'), () => line('ERROR c'), () => event('ended', { restart: 0, exitCode: 137, reason: 'OOMKilled' }));
  expect(lines().filter((text) => !text.includes('—')).map((text) => text.replace(/^\S+ /, ''))).toEqual(['p/maina', 'p/sideb', 'p/mainERROR c']);
  expect([...page.element.querySelectorAll('select[aria-label=Container] option')].map(({ textContent }) => textContent)).toEqual(['All 2 containers', 'p/main (ended with exit code 137 (OOMKilled))', 'p/side']);
  page.act(() => page.button('Side by side').click());
  expect(location.hash).toBe('#pods/n/p?log=side');
  await pass();
  expect(sides()).toEqual(['p/main ended with exit code 137 (OOMKilled): a,ERROR c', 'p/side: b']);
  const input = page.element.querySelector('input');
  if (input) page.type(input, 'b');
  await pass();
  page.act(() => page.element.querySelector<HTMLButtonElement>('button[aria-label="Next match"]')?.click());
  expect(page.element.querySelector('[aria-label="p/side"] .log-here .log-text')?.textContent).toBe('b');
  page.act(() => page.button('Side by side').click());
  expect(location.hash).toBe('#pods/n/p');
  expect(sides()).toEqual([]);
});

import type { Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { act } from 'react';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frame, type ScriptedBody, type ScriptedFetch } from '../../../mock/fetch.ts';
import { eachPage } from '../../../mock/page.ts';
import { render, type Rendered } from '../../../mock/render.ts';
import { pods } from '../job/resources.ts';
import { Log } from './Log.tsx';


let server: ScriptedFetch;
let kc: Kubecast;
let page: Rendered;
let told: ScriptedBody;
let watch: string;

eachPage((made) => ({ server, kc } = made));
beforeEach(() => {
  // A document without a layout has no sizes.
  vi.spyOn(HTMLElement.prototype, 'clientHeight', 'get').mockReturnValue(600);
  vi.spyOn(HTMLElement.prototype, 'clientWidth', 'get').mockReturnValue(800);
});
afterEach(() => {
  page.unmount();
  localStorage.clear();
  vi.restoreAllMocks();
});

const pass = (ms = 100): Promise<unknown> => act(() => vi.advanceTimersByTimeAsync(ms));
let said = 0;
const event = (type: string, more: object, container = 'main'): string => frame(`${watch}.${type}`, `e.${watch}-p${++said}`, { namespace: 'n', pod: 'p', container, ...more });
const line = (text: string, time = '2026-11-27T10:00:00Z', container = 'main'): string => event('line', { time, text }, container);
const tell = async (...frames: string[]): Promise<void> => {
  for (const one of frames) told.push(one);
  await pass();
};
const open = async (...frames: (() => string)[]): Promise<void> => {
  page = render(
    <KubecastProvider client={kc}>
      <Log of={pods} namespace="n" name="p" token={undefined} />
    </KubecastProvider>,
  );
  await pass();
  watch = [...new URL(server.last.url, 'http://x').searchParams].find(([, value]) => value.startsWith('/logs/'))?.[0] ?? '';
  told = server.last.accept(...frames.map((one) => one()), frame(`${watch}.synced`, `e.${watch}-p0`, { lines: 0 }));
  await pass();
};
const lines = (): string[] => [...page.element.querySelectorAll('.log-line')].map(({ textContent }) => textContent);

test('what a line would do to a terminal or a page is not done', async () => {
  await open(() => line('\x1b[31mred\x1b[0m <img src=x onerror=alert(1)>'), () => line('\r 10%\r100%'), () => line('\x1b]8;;javascript:alert(1)\x07link\x1b]8;;\x07'));
  expect(page.element.querySelector('.ansi-red')?.textContent).toBe('red');
  expect(lines().map((text) => text.replace(/^\S+ /, ''))).toEqual(['red <img src=x onerror=alert(1)>', '100%', 'link']);
  expect(page.element.querySelectorAll('.log-text img, .log-text a')).toHaveLength(0);
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

test('lines are told by their level, and what a node says instead of a log is none of them', async () => {
  await open(() => line('INFO fine'), () => line('ERROR bad'), () => line('  at x'), () => event('reset', { reason: 'unavailable', message: 'unable to retrieve container logs for containerd://1' }));
  expect(page.element.querySelector('.log-reset')?.textContent).toBe('— this log cannot be read; the node says: unable to retrieve container logs for containerd://1 —');
  const level = page.element.querySelector<HTMLSelectElement>('select[aria-label=Level]');
  page.act(() => {
    if (level) level.value = 'error';
    level?.dispatchEvent(new Event('change', { bubbles: true }));
  });
  expect(lines().filter((text) => !text.startsWith('—')).map((text) => text.replace(/^\S+ /, ''))).toEqual(['ERROR bad', '  at x']);
  expect(page.element.querySelector('.log-count')?.textContent).toBe('3 of 4 lines');
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
  const range = document.createRange();
  range.setStart(rows[from]?.firstChild ?? document, 1);
  range.setEnd(rows[to]?.firstChild ?? document, 1);
  document.getSelection()?.removeAllRanges();
  document.getSelection()?.addRange(range);
  document.dispatchEvent(new Event('selectionchange'));
};

test('what is copied is whole lines with their ends, and a selection stays when new lines come', async () => {
  await open(() => line('first'), () => line('\x1b[32msecond\x1b[0m'), () => line('third'));
  act(() => select(0, 1));
  const copy = (): string => {
    const data = new DataTransfer();
    const copied = new Event('copy', { bubbles: true, cancelable: true });
    Object.defineProperty(copied, 'clipboardData', { value: data });
    page.element.querySelector('.log-lines')?.dispatchEvent(copied);
    return data.getData('text/plain');
  };
  expect(copy()).toBe('first\nsecond\n');
  await tell(...Array.from({ length: 300 }, (_, n) => line(`more ${n}`)));
  expect(document.getSelection()?.isCollapsed).toBe(false);
  expect(copy()).toBe('first\nsecond\n');
});

test('lines of before the newest are read when somebody wants them, each once, up to the first', async () => {
  const asked: string[] = [];
  const item = (text: string): object => ({ type: 'line', namespace: 'n', pod: 'p', container: 'main', text, time: '2026-11-27T09:00:00Z' });
  const answers = [
    { count: 1005, index: 1004 }, // two lines behind the first
    { count: 1002, index: 1004, items: Array.from({ length: 1_000 }, (_, n) => item(`before ${n + 2}`)) },
    { count: 2, index: 1004, items: [item('before 0'), item('before 1')] },
  ];
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    return Promise.resolve(new Response(JSON.stringify(answers[asked.length - 1])));
  });
  try {
    await open(() => event('started', { restart: 1 }), () => line('newest'), () => line('of the same time'), () => line('later', '2026-11-27T10:00:01Z'));
    page.act(() => page.button('Earlier lines ↑').click());
    await vi.waitFor(() => page.button('2 earlier lines ↑'), { timeout: 60_000 });
    page.act(() => page.button('2 earlier lines ↑').click());
    await vi.waitFor(() => expect(page.element.querySelector('.log-earlier')).toBeNull(), { timeout: 60_000 });
    expect(asked).toEqual([
      '/logs/api/v1/namespaces/n/pods/p?view=lines&container=main&limit=0&time=2026-11-27T10%3A00%3A01Z',
      '/logs/api/v1/namespaces/n/pods/p?view=lines&container=main&from=2&limit=1000&time=2026-11-27T10%3A00%3A01Z',
      '/logs/api/v1/namespaces/n/pods/p?view=lines&container=main&from=0&limit=2&time=2026-11-27T10%3A00%3A01Z',
    ]);
    const input = page.element.querySelector('input');
    if (input) page.type(input, 'before');
    await pass();
    expect(page.element.querySelector('.log-count')?.textContent).toBe('– of 1,002');
  } finally {
    vi.unstubAllGlobals();
  }
});

test('lines whose places have become others are not put before those that are there', async () => {
  const item = (text: string): object => ({ type: 'line', namespace: 'n', pod: 'p', container: 'main', text, time: '2026-11-27T09:00:00Z' });
  const places = [2001, 2001, 1990, 1990, 1990]; // of the line by whose time it is asked: eleven were rotated away behind the second question
  let n = 0;
  vi.stubGlobal('fetch', (url: string) => {
    const q = new URL(url, 'http://x').searchParams;
    const [from, limit] = [Number(q.get('from')), Number(q.get('limit'))];
    const index = places[n++];
    return Promise.resolve(new Response(JSON.stringify({ items: Array.from({ length: limit }, (_, k) => item(`line ${from + k + 2001 - (index ?? 0)}`)), index })));
  });
  try {
    await open(() => event('started', { restart: 1 }), () => line('newest'), () => line('later', '2026-11-27T10:00:01Z'));
    page.act(() => page.button('Earlier lines ↑').click());
    await vi.waitFor(() => page.button('1,000 earlier lines ↑'), { timeout: 60_000 });
    page.act(() => page.button('1,000 earlier lines ↑').click());
    await vi.waitFor(() => page.button('Earlier lines ↑'), { timeout: 60_000 }); // it begins anew
    page.act(() => page.button('Earlier lines ↑').click());
    await vi.waitFor(() => page.button('989 earlier lines ↑'), { timeout: 60_000 });
  } finally {
    vi.unstubAllGlobals();
  }
});

test('a log too long to be placed is not told to have no earlier lines', async () => {
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify({ first: 'a', from: 0, items: [], count: 700_000, complete: false, stopped: 'bytes' }))));
  try {
    await open(() => event('started', { restart: 1 }), () => line('newest'), () => line('later', '2026-11-27T10:00:01Z'));
    page.act(() => page.button('Earlier lines ↑').click());
    await pass();
    expect(page.element.querySelector('.log-earlier')).not.toBeNull();
  } finally {
    vi.unstubAllGlobals();
  }
});

test('of an answer that is cut the lines are asked for again that join the newest', async () => {
  const item = (text: string): object => ({ type: 'line', namespace: 'n', pod: 'p', container: 'main', text, time: '2026-11-27T09:00:00Z' });
  const all = Array.from({ length: 2_000 }, (_, n) => item(`before ${n}`));
  const asked: string[] = [];
  vi.stubGlobal('fetch', (url: string) => {
    asked.push(url);
    const q = new URL(url, 'http://x').searchParams;
    const [from, limit] = [Number(q.get('from')), Number(q.get('limit'))];
    if (limit === 0) return Promise.resolve(new Response(JSON.stringify({ items: [], count: 2002, index: 2001, complete: false })));
    const items = all.slice(from, from + Math.min(limit, 600)); // of 4 MiB there are 600
    return Promise.resolve(new Response(JSON.stringify({ from, items, count: from + items.length, complete: false, ...(limit > 600 ? { stopped: 'size' } : { index: 2001 }) })));
  });
  try {
    await open(() => event('started', { restart: 1 }), () => line('newest'), () => line('later', '2026-11-27T10:00:01Z'));
    page.act(() => page.button('Earlier lines ↑').click());
    for (let n = 0; n < 20; n++) await pass();
    expect(asked.slice(1).map((url) => url.replace(/.*&from/, 'from').replace(/&time.*/, ''))).toEqual(['from=1000&limit=1000', 'from=1500&limit=500']);
    expect(page.element.querySelector('.log-earlier')?.textContent).toBe('1,500 earlier lines ↑');
  } finally {
    vi.unstubAllGlobals();
  }
});

test('what comes in front moves nothing, also where a filter shows a part of it', async () => {
  localStorage.setItem('kubecast.log', JSON.stringify({ level: 'error' }));
  const item = (text: string): object => ({ type: 'line', namespace: 'n', pod: 'p', container: 'main', text, time: '2026-11-27T09:00:00Z' });
  const answers = [{ count: 1002, index: 1001 }, { count: 1000, index: 1001, items: Array.from({ length: 1_000 }, (_, n) => item(n % 100 === 0 ? 'ERROR x' : 'INFO x')) }];
  let n = 0;
  vi.stubGlobal('fetch', () => Promise.resolve(new Response(JSON.stringify(answers[n++]))));
  try {
    await open(() => event('started', { restart: 1 }), () => line('ERROR newest'), () => line('ERROR later', '2026-11-27T10:00:01Z'));
    const scroller = page.element.querySelector('.log-lines');
    vi.spyOn(HTMLElement.prototype, 'scrollHeight', 'get').mockReturnValue(1_000_000);
    page.act(() => {
      if (scroller) scroller.scrollTop = 0;
      scroller?.dispatchEvent(new Event('scroll'));
    });
    const before = scroller?.scrollTop ?? 0;
    page.act(() => page.button('Earlier lines ↑').click());
    for (let k = 0; k < 20; k++) await pass();
    expect((scroller?.scrollTop ?? 0) - before).toBeLessThanOrEqual(10 * 18);
  } finally {
    vi.unstubAllGlobals();
  }
});

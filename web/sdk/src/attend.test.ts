// @vitest-environment happy-dom
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { attend, type AttendOptions } from './attend.ts';

let visibility: DocumentVisibilityState;
let told: string[];
let stop: () => void;

beforeEach(() => {
  vi.useFakeTimers();
  visibility = 'visible';
  vi.spyOn(document, 'visibilityState', 'get').mockImplementation(() => visibility);
  told = [];
  stop = () => undefined;
});
afterEach(() => {
  stop();
  vi.restoreAllMocks();
  vi.useRealTimers();
});

const begin = (options?: AttendOptions): void => {
  stop = attend({ wake: () => void told.push('wake'), pause: () => void told.push('pause'), resume: () => void told.push('resume') }, options);
};
const see = (now: DocumentVisibilityState): void => {
  visibility = now;
  document.dispatchEvent(new Event('visibilitychange'));
};

test('a page that nobody looks at lets go of its stream, and has it again at once when somebody does', () => {
  begin();
  see('hidden');
  vi.advanceTimersByTime(3_000);
  window.dispatchEvent(new Event('online')); // is nothing to a hidden page
  expect(told).toEqual(['pause']);
  see('visible');
  expect(told).toEqual(['pause', 'resume']);
});

test('a glance elsewhere costs nothing but a look whether the stream still stands', () => {
  begin();
  see('hidden');
  vi.advanceTimersByTime(2_000);
  see('visible');
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(['wake']);
});

test('a tab that was opened in the background asks for nothing before it is looked at', () => {
  visibility = 'hidden';
  begin();
  expect(told).toEqual(['pause']);
});

test('a page that its browser stops, or puts aside to go back to, does not wait to be told twice', () => {
  begin();
  document.dispatchEvent(new Event('freeze'));
  document.dispatchEvent(new Event('resume'));
  window.dispatchEvent(new Event('pagehide'));
  window.dispatchEvent(new Event('pageshow'));
  window.dispatchEvent(new Event('online'));
  expect(told).toEqual(['pause', 'resume', 'pause', 'resume', 'wake']);
});

test('a page that has something to tell while it is hidden keeps its stream, unless its browser stops it', () => {
  visibility = 'hidden';
  begin({ background: 'stream' });
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual([]);
  see('visible');
  see('hidden');
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(['wake', 'wake']);
  document.dispatchEvent(new Event('freeze'));
  document.dispatchEvent(new Event('resume'));
  expect(told.slice(2)).toEqual(['pause', 'resume']);
});

test('nothing is heard of the page once it is over', () => {
  begin();
  see('hidden');
  stop();
  vi.advanceTimersByTime(60_000);
  see('visible');
  expect(told).toEqual([]);
});

test('where there is no page there is nothing to attend to', () => {
  vi.stubGlobal('document', undefined);
  begin();
  vi.unstubAllGlobals();
  expect(told).toEqual([]);
});

test('an app that is sent to the background lets go of its stream, and has it again once it is back', () => {
  let change: (state: string) => void = () => undefined;
  let removed = false;
  begin({ app: { currentState: 'active', addEventListener: (_, listener) => ((change = listener), { remove: () => void (removed = true) }) } });
  change('inactive'); // something lies over it
  vi.advanceTimersByTime(60_000);
  expect(told).toEqual(['wake']);
  change('background');
  vi.advanceTimersByTime(3_000);
  expect(told).toEqual(['wake', 'pause']);
  change('active');
  expect(told).toEqual(['wake', 'pause', 'resume']);
  stop();
  expect(removed).toBe(true);
});

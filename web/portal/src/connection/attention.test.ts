import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { attend } from './attention.ts';

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

const begin = (): void => {
  stop = attend({ wake: () => told.push('wake'), pause: () => told.push('pause'), resume: () => told.push('resume') });
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

import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frameSchedule } from './schedule.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test('a flush comes with a frame, the next one not at once', () => {
  const schedule = frameSchedule();
  const flush = vi.fn();
  schedule(flush);
  expect(flush).not.toHaveBeenCalled();
  vi.advanceTimersByTime(20);
  expect(flush).toHaveBeenCalledTimes(1);
  schedule(flush);
  vi.advanceTimersByTime(80);
  expect(flush).toHaveBeenCalledTimes(1);
  vi.advanceTimersByTime(60);
  expect(flush).toHaveBeenCalledTimes(2);
});

test('after a flush that took long the page gets three times as long for itself', () => {
  const schedule = frameSchedule();
  schedule(() => vi.advanceTimersByTime(200));
  vi.advanceTimersToNextTimer(); // the frame
  vi.advanceTimersToNextTimer(); // what comes after it has been painted
  const next = vi.fn();
  schedule(next);
  vi.advanceTimersByTime(590);
  expect(next).not.toHaveBeenCalled();
  vi.advanceTimersByTime(40);
  expect(next).toHaveBeenCalledTimes(1);
});

test('a page that is visible and is given no frame goes on without; a hidden one waits until it is shown', () => {
  const frames: FrameRequestCallback[] = [];
  vi.stubGlobal('requestAnimationFrame', (callback: FrameRequestCallback) => frames.push(callback));
  vi.stubGlobal('cancelAnimationFrame', (frame: number) => (frames[frame - 1] = () => undefined));
  const page = { hidden: true };
  vi.stubGlobal('document', page);
  const schedule = frameSchedule();
  const flush = vi.fn();
  schedule(flush);
  vi.advanceTimersByTime(60_000);
  expect(flush).not.toHaveBeenCalled();
  page.hidden = false;
  vi.advanceTimersByTime(1_000);
  expect(flush).toHaveBeenCalledTimes(1);
  for (const late of frames) late(0);
  vi.advanceTimersByTime(60_000);
  expect(flush).toHaveBeenCalledTimes(1); // a frame that comes after all finds nothing to do
  schedule(flush);
  vi.advanceTimersByTime(1_200);
  expect(flush).toHaveBeenCalledTimes(2);
});

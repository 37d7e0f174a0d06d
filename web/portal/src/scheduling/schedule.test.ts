import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { frameSchedule } from './schedule.ts';

beforeEach(() => {
  vi.useFakeTimers();
});

afterEach(() => {
  vi.useRealTimers();
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

import { getEventListeners } from 'node:events';
import { expect, test, vi } from 'vitest';
import { sleep, within } from './deadline.ts';

test('what is over before it begins is not begun', async () => {
  const over = new AbortController();
  const reason = new Error('left');
  over.abort(reason);
  const ask = vi.fn(() => Promise.resolve(1));
  await expect(within(1_000, ask, over.signal)).rejects.toBe(reason);
  expect(ask).not.toHaveBeenCalled();
});

test('a wait that is over leaves nobody listening, and one that is aborted ends at once', async () => {
  vi.useFakeTimers();
  const page = new AbortController();
  const waits = Array.from({ length: 5 }, () => sleep(1_000, page.signal));
  expect(getEventListeners(page.signal, 'abort').length).toBe(5);
  await vi.advanceTimersByTimeAsync(1_000);
  await Promise.all(waits);
  expect(getEventListeners(page.signal, 'abort').length).toBe(0);
  const endless = sleep(undefined, page.signal);
  page.abort();
  await endless;
  await sleep(1_000, page.signal);
  vi.useRealTimers();
});

import { AskedError } from '@kubecast/sdk';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { Reading } from './polling.ts';

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const over = (ms = 0): Promise<unknown> => vi.advanceTimersByTimeAsync(ms);
const stop: (() => void)[] = [];
afterEach(() => stop.splice(0).forEach((one) => one()));
const follow = <T>(reading: Reading<T>): void => void stop.push(reading.subscribe(() => undefined));

test('many changes are few questions, of which there is one at a time, and the last change is read', async () => {
  let value = 0;
  let under = 0;
  let most = 0;
  let asked = 0;
  const reading = new Reading(async () => {
    asked++;
    most = Math.max(most, ++under);
    const now = value;
    await new Promise((resolve) => setTimeout(resolve, 50));
    under--;
    return now;
  }, 1_000);
  follow(reading);
  for (value = 1; value < 50; value++) {
    reading.ask();
    await over(100);
  }
  reading.ask();
  await over(3_000);
  expect(reading.getSnapshot().data).toBe(50);
  expect(most).toBe(1);
  expect(asked).toBeGreaterThan(3);
  expect(asked).toBeLessThan(9);
});

test('what could not be read is tried again by itself, unless it is refused; what was read stays', async () => {
  const fail: { with: Error | undefined } = { with: undefined };
  const read = vi.fn(() => (fail.with ? Promise.reject(fail.with) : Promise.resolve('all')));
  const reading = new Reading(read, 100);
  follow(reading);
  await over();
  fail.with = new AskedError(503, 'the database is away');
  reading.ask();
  await over(1_000);
  expect(reading.getSnapshot()).toMatchObject({ data: 'all', error: fail.with });
  await over(30_000);
  expect(read.mock.calls.length).toBeGreaterThan(3);
  fail.with = new AskedError(403, 'no');
  await over(20_000);
  const asked = read.mock.calls.length;
  await over(60_000);
  expect(read.mock.calls.length).toBe(asked);
  fail.with = undefined;
  reading.retry();
  await over();
  expect(reading.getSnapshot().error).toBeUndefined();
});

test('nobody looks, nothing is asked', async () => {
  const read = vi.fn(() => Promise.resolve(1));
  const reading = new Reading(read, 100);
  reading.ask();
  await over(1_000);
  expect(read).not.toHaveBeenCalled();
});

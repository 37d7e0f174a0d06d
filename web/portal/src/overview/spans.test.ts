import { expect, test } from 'vitest';
import { spans, stepOf, stepsUntil } from './spans.ts';

const hour = 3_600_000;

test('the last step ends now, and what is older than the first, or was never, is in none', () => {
  const span = { length: 24 * hour, stepLength: hour };
  const now = 1_000 * hour;
  const steps = stepsUntil(now, span);
  expect(steps).toHaveLength(24);
  expect(stepOf(now - 1, steps, hour)).toBe(23);
  expect(stepOf(now + 500, steps, hour)).toBe(23); // clocks differ
  expect(stepOf(now - 24 * hour, steps, hour)).toBe(0);
  expect(stepOf(now - 24 * hour - 1, steps, hour)).toBeUndefined();
  expect(stepOf(NaN, steps, hour)).toBeUndefined();
});

test('each span is a whole number of its steps, and no more than the gateway sums up', () => {
  for (const { length, stepLength } of Object.values(spans)) {
    expect(length % stepLength).toBe(0);
    expect(length / stepLength).toBeLessThan(1_000);
  }
});

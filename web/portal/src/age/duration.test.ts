import { expect, test } from 'vitest';
import { formatDuration } from './duration.ts';

test.each([
  [-5_000, '0s'],
  [NaN, '0s'],
  [999, '0s'],
  [119_999, '119s'],
  [120_000, '2m'],
  [125_000, '2m5s'],
  [600_000, '10m'],
  [10_740_000, '179m'],
  [3 * 3_600_000 + 60_000, '3h1m'],
  [8 * 3_600_000, '8h'],
  [49 * 3_600_000, '2d1h'],
  [400 * 86_400_000, '400d'],
])('%d ms is %s', (ms, want) => {
  expect(formatDuration(ms)).toBe(want);
});

import { expect, test } from 'vitest';
import { formatDuration, plural } from './format.ts';

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

test('a number stands in the form of its plural, and a form that is not there in the other', () => {
  const pods = { one: '{} pod', other: '{} pods' };
  expect([0, 1, 2, 1234].map((count) => plural(count, pods))).toEqual(['0 pods', '1 pod', '2 pods', '1,234 pods']);
  expect(plural(1, { other: '{} 个' })).toBe('1 个');
});

import { expect, test } from 'vitest';
import { backoff, parseRetryAfter } from './backoff.ts';

test('all of the window is jitter, none of what the server asked for', () => {
  const wait = { failures: 3, retry: 2_000 };
  expect(backoff(wait, () => 0)).toBe(2_000);
  expect(backoff(wait, () => 0.5)).toBe(2_000 + 8_000);
  expect(backoff(wait, () => 0.999)).toBeLessThan(2_000 + 16_000);
});

test('without a word from the server even the first wait is spread', () => {
  expect(backoff({ failures: 0, retry: undefined }, () => 0)).toBe(0);
  expect(backoff({ failures: 0, retry: undefined }, () => 0.5)).toBe(500);
});

test('retry: 0 is no licence to hammer', () => {
  expect(backoff({ failures: 5, retry: 0 }, () => 0.5)).toBeGreaterThan(10_000);
});

test('a thousand failures neither overflow nor end the attempts', () => {
  expect(backoff({ failures: 1_000, retry: 2_000 }, () => 1)).toBe(32_000);
});

test('a server cannot send a client away for a year', () => {
  expect(backoff({ failures: 0, retry: 31_536_000_000 })).toBe(300_000);
});

test.each([
  ['120', 120_000],
  ['0', 0],
  ['Wed, 01 Jan 2031 00:00:10 GMT', 10_000],
  ['Wed, 01 Jan 2020 00:00:00 GMT', 0],
  ['soon', undefined],
  [null, undefined],
])('Retry-After: %s', (header, want) => {
  expect(parseRetryAfter(header, Date.parse('2031-01-01T00:00:00Z'))).toBe(want);
});

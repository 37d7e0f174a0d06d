import { expect, test } from 'vitest';
import { isRounded, parseExact } from './exact.ts';

test('whole numbers beyond 2^53 are as they are, and all else as ever', () => {
  expect(parseExact('{"a":9007199254740993,"b":[-9223372036854775808,9007199254740991],"c":12,"d":0.12345678901234567,"e":1e300}')).toEqual({
    a: 9007199254740993n, b: [-9223372036854775808n, 9007199254740991], c: 12, d: 0.12345678901234567, e: 1e300,
  });
});

test('digits in texts are none', () => {
  const texts = { name: 'job-9007199254740993', quoted: 'a "9007199254740993" \\ 9007199254740993', '9007199254740993': '\\"9007199254740993', nul: '\u00009007199254740993' };
  expect(parseExact(JSON.stringify({ ...texts, n: 0 }).replace(':0}', ':9007199254740993}'))).toEqual({ ...texts, n: 9007199254740993n });
  expect(() => parseExact('{"a":9007199254740993')).toThrow(SyntaxError);
});

test('a text of megabytes is no trouble', () => {
  const data = `${'\\"'.repeat(1_000_000)}${'x'.repeat(2_000_000)}`;
  expect(parseExact(`{"data":"${data}","n":9007199254740993}`)).toMatchObject({ n: 9007199254740993n });
});

test('what may have been rounded is noticed, wherever it stands', () => {
  expect([{ a: [{ b: 2 ** 53 }] }, { a: 2 ** 53 - 1 }, { a: 0.5 }, '9007199254740993', null].map(isRounded)).toEqual([true, false, false, false, false]);
});

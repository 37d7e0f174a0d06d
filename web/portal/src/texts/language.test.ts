import { expect, test } from 'vitest';
import { preferred } from './language.ts';

test.each<[string | null, string[], string]>([
  [null, ['zh-CN', 'en'], 'zh-CN'],
  [null, ['zh-Hant-TW'], 'zh-CN'],
  [null, ['de-DE', 'zh', 'en'], 'zh-CN'],
  [null, ['en-GB', 'zh'], 'en'],
  [null, ['de'], 'en'],
  [null, [], 'en'],
  ['en', ['zh-CN'], 'en'],
  ['zh-CN', ['en'], 'zh-CN'],
  ['fr', ['zh-CN'], 'zh-CN'], // kept by a version that had it
  ['toString', ['en'], 'en'],
])('who has chosen %s, and whose browser wants %s, reads %s', (chosen, wanted, language) => {
  expect(preferred(chosen, wanted)).toBe(language);
});

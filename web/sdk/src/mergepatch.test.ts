import { expect, test } from 'vitest';
import { mergePatch } from './mergepatch.ts';

// The cases of RFC 7386, appendix A.
test.each([
  ['{"a":"b"}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"b"}', '{"b":"c"}', '{"a":"b","b":"c"}'],
  ['{"a":"b"}', '{"a":null}', '{}'],
  ['{"a":"b","b":"c"}', '{"a":null}', '{"b":"c"}'],
  ['{"a":["b"]}', '{"a":"c"}', '{"a":"c"}'],
  ['{"a":"c"}', '{"a":["b"]}', '{"a":["b"]}'],
  ['{"a":{"b":"c"}}', '{"a":{"b":"d","c":null}}', '{"a":{"b":"d"}}'],
  ['{"a":[{"b":"c"}]}', '{"a":[1]}', '{"a":[1]}'],
  ['["a","b"]', '["c","d"]', '["c","d"]'],
  ['{"a":"b"}', '["c"]', '["c"]'],
  ['{"a":"foo"}', 'null', 'null'],
  ['{"a":"foo"}', '"bar"', '"bar"'],
  ['{"e":null}', '{"a":1}', '{"e":null,"a":1}'],
  ['[1,2]', '{"a":"b","c":null}', '{"a":"b"}'],
  ['{}', '{"a":{"bb":{"ccc":null}}}', '{"a":{"bb":{}}}'],
])('%s with %s is %s', (target, patch, want) => {
  expect(mergePatch(JSON.parse(target), JSON.parse(patch))).toEqual(JSON.parse(want));
});

test('the target stays as it was, and what the patch does not name is shared', () => {
  const target = { spec: { a: 1 }, status: { b: 1, c: 1 } };
  const merged = mergePatch(target, { status: { b: 2 } }) as typeof target;
  expect(target.status.b).toBe(1);
  expect(merged.spec).toBe(target.spec);
});

test('a key called __proto__ is a key', () => {
  const merged = mergePatch({}, JSON.parse('{"__proto__":{"admin":true}}')) as { admin?: boolean };
  expect(merged.admin).toBeUndefined();
  expect(Object.keys(merged)).toEqual(['__proto__']);
});

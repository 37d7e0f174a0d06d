import ts from 'typescript';
import { expect, test } from 'vitest';
import { inChinese } from '../../../mock/chinese.ts';

const sources = import.meta.glob<string>(['../**/*.{ts,tsx}', '!../**/*.test.{ts,tsx}'], { query: '?raw', import: 'default', eager: true });

/** The texts of a file; what is put into one is `…`. */
function textsOf(name: string, source: string): string[] {
  const found: string[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isStringLiteralLike(node) || ts.isJsxText(node)) found.push(node.text);
    if (ts.isTemplateExpression(node)) found.push([node.head.text, ...node.templateSpans.map(({ literal }) => literal.text)].join('…'));
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(name, source, ts.ScriptTarget.Latest, false, ts.ScriptKind.TSX));
  return found;
}

test('no Chinese text has a comma, a bracket or a full stop that is not of its script', () => {
  const chinese = Object.entries(sources).flatMap(([name, source]) => textsOf(name, source).filter((text) => /\p{Script=Han}/u.test(text)).map((text) => `${name}: ${text}`));
  expect(chinese.length).toBeGreaterThan(500);
  // Within a word of code, as in 1.5 or a/b:c, it is no punctuation.
  expect(chinese.map((text) => text.slice(text.indexOf(': ') + 2)).filter((text) => /[,;!?()"]|[:.](?![\w/])/.test(text))).toEqual([]);
});

test('what is put together of several texts has the marks of its language', async () => {
  const english = (await import('./punctuation.ts')).marks;
  expect({ ...english, within: english.within('a') }).toEqual({ comma: ', ', list: ', ', colon: ': ', within: ' (a)' });
  const chinese = (await inChinese(() => import('./punctuation.ts'))).marks;
  expect({ ...chinese, within: chinese.within('a') }).toEqual({ comma: '，', list: '、', colon: '：', within: '（a）' });
  const { numbersOf } = await inChinese(() => import('../queues/Quota.tsx'));
  expect(numbersOf({ resource: 'cpu', used: 12, reserved: 12, quota: 8, borrowed: 4 } as unknown as Parameters<typeof numbersOf>[0])).not.toContain(',');
});

import { expect, test } from 'vitest';
import { baseOf } from './base.ts';

test('the base of a page is a path of its own host, whatever its address is', () => {
  expect(baseOf('/')).toBe('');
  expect(baseOf('/index.html')).toBe('');
  expect(baseOf('/tools/kubecast/')).toBe('/tools/kubecast');
  expect(baseOf('//evil.example/..%2f')).toBe('/evil.example');
  expect(baseOf('///evil.example/')).toBe('/evil.example');
  expect(baseOf('blank')).toBe('');
});

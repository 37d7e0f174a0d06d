import type { LogEntry } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { atLeast, levelOf } from './levels.ts';

test.each([
  ['2026-11-27 10:00:00,123 ERROR trainer: loss is nan', 'error'],
  ['\x1b[33mWARNING\x1b[0m grad norm 12.1', 'warning'],
  ['[rank0]: Traceback (most recent call last):', undefined],
  ['Traceback (most recent call last):', 'error'],
  ['torch.cuda.OutOfMemoryError: CUDA out of memory', 'error'],
  ['E1127 10:00:00.123456       1 reflector.go:140] failed', 'error'],
  ['I1127 10:00:00.123456       1 main.go:1] error rate 0', 'info'],
  ['{"ts":1,"level":"warn","msg":"slow"}', 'warning'],
  ['time="2026-11-27T10:00:00Z" level=debug msg=x', 'debug'],
  ['validation error: 0.02', undefined],
  ['NO-ERROR here', undefined],
  [`${'x'.repeat(5_000)} ERROR`, undefined],
])('%j', (text, level) => expect(levelOf(text)).toBe(level));

const line = (number: number, text: string, container = 'main'): LogEntry => ({ number, namespace: 'n', pod: 'p', container, type: 'line', time: '', text, cut: false });

test('lines of a level come with those that go on behind them, such as a stack, of the same container', () => {
  const all = [line(0, 'INFO begins'), line(1, 'ERROR it fails'), line(2, '  at main.py:3'), line(3, 'unrelated', 'side'), line(4, 'INFO goes on'), line(5, '  more')];
  expect(atLeast(all, 'error').map(({ number }) => number)).toEqual([1, 2]);
  expect(atLeast(all, '')).toBe(all);
  expect(atLeast(all, 'info').map(({ number }) => number)).toEqual([0, 1, 2, 4, 5]);
});

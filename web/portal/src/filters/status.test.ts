import { expect, test } from 'vitest';
import { whereIs } from './status.ts';

test('a state with signs that selectors know is asked for as it is', () => {
  expect(whereIs('$status', '')).toBeUndefined();
  expect(whereIs('$status', 'CrashLoopBackOff')).toBe('$status=CrashLoopBackOff');
  expect(whereIs('$status', 'Ready,SchedulingDisabled')).toBe('$status=Ready\\,SchedulingDisabled');
  expect(whereIs('$status', 'a=b\\c')).toBe('$status=a\\=b\\\\c');
});

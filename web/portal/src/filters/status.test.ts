import { expect, test } from 'vitest';
import { whereAll, whereIs } from './status.ts';

test('a state with signs that selectors know is asked for as it is', () => {
  expect(whereIs('$status', '')).toBeUndefined();
  expect(whereIs('$status', 'CrashLoopBackOff')).toBe('$status=CrashLoopBackOff');
  expect(whereIs('$status', 'Ready,SchedulingDisabled')).toBe('$status=Ready\\,SchedulingDisabled');
  expect(whereIs('$status', 'a=b\\c')).toBe('$status=a\\=b\\\\c');
});

test('names with signs that selectors know are looked for as they are', () => {
  expect(whereAll({ 'involvedObject.kind': 'Role', 'involvedObject.name': 'system:a,b=c' })).toBe('involvedObject.kind=Role,involvedObject.name=system:a\\,b\\=c');
});

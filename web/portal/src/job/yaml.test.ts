import { expect, test } from 'vitest';
import { parse, stringify } from 'yaml';
import { asKubernetesReads, changedLines, withoutNoise } from './yaml.ts';

const lines = (text: string): string[] => text.split(' ');
const changed = (before: string, now: string): string => [...changedLines(lines(before), lines(now))].join();

test('what a change has brought is marked, and nothing else', () => {
  expect(changed('a b c d', 'a x c d')).toBe('1');
  expect(changed('a b c d', 'a b c d')).toBe('');
  expect(changed('a b c d', 'a d')).toBe('');
  expect(changed('a b', 'a x y b z')).toBe('1,2,4');
  expect(changed('a b c d e', 'a 1 c 2 e')).toBe('1,3');
  expect(changed('a a a', 'a a a a')).toBe('3');
});

test('texts that have nothing in common are marked as a whole, however long', () => {
  const many = (of: string): string[] => Array.from({ length: 3_000 }, (_, n) => `${of}${n}`);
  expect(changedLines(many('a'), many('b')).size).toBe(3_000);
});

test('managed fields and what the gateway derives are left out, and what it is comes first', () => {
  const object = { metadata: { name: 'a', uid: 'u', managedFields: [{}] }, status: {}, $status: 'Running', kind: 'Job', apiVersion: 'batch/v1' };
  expect(JSON.stringify(withoutNoise(object))).toBe('{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"a","uid":"u"},"status":{}}');
});

test('texts that Kubernetes would read as something else are quoted', () => {
  for (const text of ['yes', 'n', 'Off', '~', '012', '0o14', '0X1F', '0b1', '1_000', '12:30:45', '1e3', '.inf', '2026-01-02', '=', 'null', '- a', 'a: b', '', '0x', '+0o7']) {
    const written = stringify({ text }, asKubernetesReads).trim();
    expect(written, text).toMatch(/^text: (["'].*["']|0x)$/);
    expect(parse(written, { version: '1.1' })).toEqual({ text });
  }
  expect(stringify({ a: 12, yes: true, big: 9007199254740993n }, asKubernetesReads)).toBe('a: 12\n"yes": true\nbig: 9007199254740993\n');
});

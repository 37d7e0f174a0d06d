import type { LogEntry } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { commonName, entriesOf, newerThan, sourcesOf, words } from './entries.ts';
import { addressAt, lineAt } from './address.ts';
import { matchesOf, parts } from './find.ts';

const of = (number: number, container: string) => ({ number, namespace: 'n', pod: 'p', container });
const line = (number: number, container: string, text: string): LogEntry => ({ ...of(number, container), type: 'line', time: '', text, cut: false });
const entries: LogEntry[] = [
  { ...of(0, 'main'), type: 'started', restart: 0, reason: '', exitCode: undefined },
  line(1, 'main', 'Epoch 1 loss 0.5'),
  line(2, 'side', 'epoch'),
  { ...of(3, 'main'), type: 'reset', reason: 'expired', message: '' },
];
const numbers = (found: readonly LogEntry[]): string => found.map(({ number }) => number).join();

test('a search finds lines in whatever case and colour, and no words of the portal itself', () => {
  expect(matchesOf(entries, 'EPOCH').join()).toBe('1,2');
  expect(matchesOf(entries, 'started')).toEqual([]);
  expect(matchesOf(entries, '')).toEqual([]);
  expect(matchesOf([line(1, 'main', 'lo\u001b[31mss is n\u001b[0man')], 'loss is nan')).toEqual([1]);
  expect(numbers(entriesOf(entries, 'p/main'))).toBe('0,1,3');
  expect(entriesOf(entries, '')).toBe(entries);
  expect(sourcesOf(entries)).toEqual(['p/main', 'p/side']);
});

test('what was found is cut out of a line as it is written there', () => {
  expect(parts('Epoch 1, epoch 2', 'EPOCH')).toEqual(['', 'Epoch', ' 1, ', 'epoch', ' 2']);
  expect(parts('none', 'x')).toEqual(['none']);
  expect(parts('aaa', 'aa')).toEqual(['', 'aa', 'a']);
  expect(parts('İstanbul', 'i').join('')).toBe('İstanbul');
});

test('a run and a gap are told in words, also of a kind that is not known yet', () => {
  const run = { ...of(0, 'main'), reason: '', exitCode: undefined };
  expect(words({ ...run, type: 'started', restart: 11 })).toContain('after 11 restarts');
  expect(words({ ...run, type: 'started', restart: 1 })).toContain('after 1 restart ');
  expect(words({ ...run, type: 'ended', restart: 0, reason: 'Error', exitCode: 137 })).toBe('— ended with exit code 137 (Error) —');
  expect(words({ ...of(0, 'main'), type: 'reset', reason: 'meteor', message: '' })).toContain('meteor');
  expect(words({ ...of(0, 'main'), type: 'reset', reason: 'unavailable', message: '' })).toContain('cannot be reached');
  expect(words({ ...of(0, 'main'), type: 'reset', reason: 'unavailable', message: 'no such file' })).toBe('— this log cannot be read; the node says: no such file —');
});

test('what came while the reader stays is counted, also where as many of the oldest are kept no more', () => {
  expect(newerThan(entries.slice(0, 2), entries.slice(2))).toBe(2);
  expect(newerThan(entries, entries)).toBe(0);
  expect(newerThan([], entries)).toBe(4);
  expect(newerThan(entries, [])).toBe(0);
});

test('a line among others of its time has an address only where it is known which of them it is', () => {
  const at = (number: number, second: number): LogEntry => ({ ...line(number, 'main', String(number)), time: `2026-11-27T10:00:0${second}Z` }) as LogEntry;
  const began: LogEntry = { ...of(0, 'main'), type: 'started', restart: 0, reason: '', exitCode: undefined };
  const tail = [began, at(1, 1), at(2, 1), line(3, 'side', 'between'), at(4, 2), at(5, 2)];
  const address = (time: number, before: number) => ({ pod: 'p', container: 'main', time: `2026-11-27T10:00:0${time}Z`, before });
  expect([1, 2, 4, 5].map((index) => addressAt(tail, index, false))).toEqual([undefined, undefined, 'p/main/2026-11-27T10:00:02Z', 'p/main/2026-11-27T10:00:02Z/1']);
  expect(addressAt(tail, 2, true)).toBe('p/main/2026-11-27T10:00:01Z/1');
  expect([lineAt(tail, address(1, 1), false)?.number, lineAt(tail, address(1, 1), true)?.number, lineAt(tail, address(2, 1), false)?.number]).toEqual([undefined, 2, 5]);
  expect(lineAt([began, at(1, 1), at(2, 2)], address(1, 0), false)?.number).toBe(1);
});

test('what the names of all pods begin with is cut at a hyphen, and nothing of one that is alone', () => {
  const common = (...pods: string[]): string => commonName(pods.map((pod) => ({ pod })) as unknown as Parameters<typeof commonName>[0]);
  expect([common('train-7-abcde', 'train-7-abxyz', 'train-7-abcde'), common('train-0', 'train-10'), common('train', 'train-0'), common('a-0', 'b-0'), common('train-0', 'train-0'), common()]).toEqual(['train-7-', 'train-', '', '', '', '']);
});

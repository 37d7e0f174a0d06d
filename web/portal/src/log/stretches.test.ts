import type { LogEntry } from '@kubecast/sdk';
import { expect, test } from 'vitest';
import { joinIn, laterThan } from './join.ts';
import { entriesIn, isGap, isLoaded, nearest, piecesOf, withStretch, type Piece, type Stretch } from './stretches.ts';

const line = (number: number, time = '', container = 'main'): LogEntry => ({ type: 'line', number, namespace: 'n', pod: 'p', container, time, text: `${number}`, cut: false });
const stretch = (from: number, to: number): Stretch => ({ from, entries: Array.from({ length: to - from }, (_, n) => line(from + n)) });
const drawn = (pieces: readonly Piece[]): string => pieces.map((piece) => (isGap(piece) ? `(${piece.from}+${piece.missing})` : `${piece.from}-${piece.from + piece.entries.length}`)).join(' ');

test('stretches that touch are one, with each line once, in whatever order they come', () => {
  const all = [stretch(20, 30), stretch(0, 10), stretch(25, 40), stretch(10, 20)].reduce<readonly Stretch[]>(withStretch, []);
  expect(drawn(all)).toBe('0-40');
  expect(entriesIn(all).map(({ number }) => number)).toEqual(Array.from({ length: 40 }, (_, n) => n));
});

test('what is not loaded between two stretches is a gap of as many lines, and the tail begins once', () => {
  const pieces = piecesOf([stretch(-50, -40), stretch(-10, 5)], stretch(0, 20));
  expect(drawn(pieces)).toBe('-50--40 (-40+30) -10-5 5-20');
  expect([isLoaded(pieces, -40), isLoaded(pieces, -41), isLoaded(pieces, 19), isLoaded(pieces, 20)]).toEqual([false, true, true, false]);
  expect(drawn(piecesOf([], stretch(7, 9)))).toBe('7-9');
});

test('of more than there is room for, the lines far from the reader go', () => {
  expect(drawn(nearest([stretch(0, 2_000), stretch(5_000, 7_000)], 6_900, 2_500))).toBe('1500-2000 5000-7000');
  expect(drawn(nearest([stretch(0, 2_000), stretch(5_000, 7_000)], 100, 1_500))).toBe('0-1500');
});

test('times are compared to the nanosecond, in whatever zone and with however many digits', () => {
  expect(laterThan('2026-11-27T10:00:00.000000002Z', '2026-11-27T10:00:00.000000001Z')).toBe(true);
  expect(laterThan('2026-11-27T18:00:00.5+08:00', '2026-11-27T10:00:00.5Z')).toBe(false);
  expect(laterThan('2026-11-27T10:00:01Z', '2026-11-27T10:00:00.999999999Z')).toBe(true);
});

test('what is followed joins the rest at a line later than all before it, from where on no container lacks any', () => {
  const at = (second: number): string => `2026-11-27T10:00:${String(second).padStart(2, '0')}Z`;
  expect(joinIn([line(0, at(1)), line(1, at(1)), line(2, at(2))])).toBe(2);
  expect(joinIn([line(0, at(1))])).toBe(0);
  expect(joinIn([])).toBe(-1);
  const side = Array.from({ length: 1_000 }, (_, n) => line(n, at(0), 'side'));
  const main = Array.from({ length: 1_000 }, (_, n) => line(1_000 + n, at(1 + Math.floor(n / 500))));
  expect(joinIn([...side, ...main])).toBe(1_000);
  expect(joinIn([...side.slice(0, 999), ...main])).toBe(999); // main may have more, its first line is the 999th
});

test('what is followed joins nowhere where it is not known which lines are before it', () => {
  const at = (second: number): string => new Date(Date.parse('2026-11-27T10:00:00Z') + second * 1_000).toISOString();
  const lines = (from: number, count: number, second: number, container = 'main'): LogEntry[] => Array.from({ length: count }, (_, n) => line(from + n, at(second + n), container));
  const started = (number: number, restart: number): LogEntry => ({ type: 'started', number, namespace: 'n', pod: 'p', container: 'main', restart, reason: '', exitCode: undefined });
  // One container is told late: where all are told again in order, it joins.
  const late = [...lines(0, 600, 600), ...lines(600, 600, 0, 'side')];
  expect(joinIn(late)).toBe(-1);
  expect(joinIn([...late, line(1_200, at(1_200))])).toBe(1_200);
  expect(joinIn([...lines(0, 1_000, 1), ...lines(1_000, 1_000, 0, 'side')])).toBe(-1);
  // Of main there is a run before, whose lines may be among those of side.
  expect(joinIn([started(0, 1), ...lines(1, 60, 0, 'side'), line(61, at(60)), line(62, at(61), 'side')])).toBe(61);
  expect(joinIn([started(0, 1), ...lines(1, 60, 0, 'side')])).toBe(-1);
  // All have one time, and there may be others of it before.
  expect(joinIn(Array.from({ length: 1_000 }, (_, n) => line(n, at(1))))).toBe(-1);
});

// All of a log: what is followed of it, and before that what was read by its place, as far as somebody has looked there.

import type { LogEntry } from '@kubecast/sdk';
import { useEffect, useMemo, useRef, useState } from 'react';
import { joinIn, laterThan } from './join.ts';
import { saidBy, type Answer, type Ask, type Item } from './questions.ts';
import { nearest, piecesOf, withStretch, type Gap, type Piece, type Stretch } from './stretches.ts';
import { t } from './texts.ts';

/** So many come at once. */
const step = 1_000;
/** So many of a browser's memory has room for; all are in what is downloaded. */
const most = 50_000;
/** So many the client keeps of what is followed: with fewer, what began anew was told anew. */
const kept = 10_000;

interface Loaded {
  /** What is to be added to a place for its number. */
  readonly offset: number;
  /** The line by which places were known: of what is followed, those from there on. */
  readonly join: LogEntry & { readonly type: 'line' };
  readonly stretches: readonly Stretch[];
}

/** The part of what was asked for that is wanted where not all of it has room in an answer: at an end of it, or around a number. */
type Edge = 'first' | 'last' | number;

/** The places are others than they were: lines were rotated away, or came in between. */
export class Moved extends Error {}

export interface Whole {
  readonly pieces: readonly Piece[];
  /** How many lines there are before the first that is loaded; undefined: that is not known yet. */
  readonly left: number | undefined;
  readonly busy: boolean;
  /** Why the last lines that were wanted did not come; empty: they did. */
  readonly trouble: string;
  /** Counts how often places have become others. */
  readonly epoch: number;
  /** What is to be added to a place for its number; undefined: not known yet. */
  readonly offset: number | undefined;
  /** From which number on all is followed, where places are known. */
  readonly followed: number;
  readonly earlier: () => void;
  readonly fill: (gap: Gap, edge: 'first' | 'last') => void;
  /** Learns where what is followed begins. */
  readonly place: (signal: AbortSignal) => Promise<unknown>;
  /** Loads what is around a place, and tells that. In place of whatever else is being loaded. */
  readonly around: (place: number) => Promise<readonly LogEntry[]>;
  /** Loads as many as come at once from a place on, and tells them, as far as they are there; of what is followed all that is. */
  readonly onward: (place: number) => Promise<readonly LogEntry[]>;
  /** What was known by places is not so any more. */
  readonly forget: () => void;
  /** The place of the first line that is not before a time, among those that are not followed; undefined: there is none. */
  readonly placeOf: (time: string) => Promise<number | undefined>;
}

export function useWhole(ask: Ask, tail: readonly LogEntry[]): Whole {
  const [loaded, setLoaded] = useState<Loaded>();
  const [state, setState] = useState<'' | 'loading' | { readonly said: string }>('');
  const [epoch, setEpoch] = useState(0);
  const asking = useRef<AbortController>(undefined);
  useEffect(() => () => asking.current?.abort(), []);
  const start = tail[0]?.number ?? 0;
  const anew = loaded !== undefined && (tail.length === 0 || (tail.at(-1)?.number ?? 0) < loaded.join.number || (start > loaded.join.number && tail.length < kept));
  if (anew) {
    setLoaded(undefined);
    setEpoch(epoch + 1);
  }
  const here = anew ? undefined : loaded;
  const stretches = here?.stretches;
  const followed = Math.max(start, here?.join.number ?? 0);
  const pieces = useMemo(() => {
    if (!stretches?.length) return [{ from: start, entries: tail }];
    return piecesOf(stretches, { from: followed, entries: tail.slice(followed - start) });
  }, [stretches, tail, start, followed]);

  const forget = (): void => {
    setLoaded(undefined);
    setEpoch((count) => count + 1);
  };
  const join = async (signal: AbortSignal): Promise<Loaded> => {
    // The line may be kept no more; then places are asked for by a later one, and have to be what they would be.
    if (here && here.join.number >= start) return here;
    const line = tail[joinIn(tail, here !== undefined)];
    if (line?.type !== 'line') throw new Error(t.notPlaced);
    const { index, stopped } = await ask({ view: 'lines', limit: 0, time: line.time }, signal);
    if (index === undefined || stopped) throw new Error(t.tooLong);
    const offset = line.number - index;
    const next = { offset, join: line, stretches: [] };
    setLoaded((now) => (now?.offset === offset ? { ...now, join: line } : next));
    if (here && here.offset !== offset) setEpoch((count) => count + 1);
    return here?.offset === offset ? { ...here, join: line } : next;
  };
  /** From one number to another, as much of it as comes at once. */
  const read = async ({ offset, join: { number, time } }: Loaded, first: number, end: number, edge: Edge, signal: AbortSignal): Promise<Stretch> => {
    let [from, to] = [first, end];
    for (;;) {
      const answer: Answer = await ask({ view: 'lines', from: from - offset, limit: to - from, time }, signal);
      const items = answer.items ?? [];
      const cut = answer.stopped !== undefined && items.length < to - from;
      // Where not all have room in an answer it has the first of them, without a word of where the line is by which it is placed.
      if (cut) {
        if (answer.stopped !== 'size' || to - from === 1) throw new Error(t.tooLong);
        const less = Math.ceil((to - from) / 2);
        if (edge === 'last') from = to - less;
        else if (edge !== 'first') from = Math.max(from, Math.min(edge - Math.floor(less / 2), to - less));
        to = from + less;
        continue;
      }
      if (answer.index === undefined || answer.index + offset !== number) throw new Moved();
      return { from, entries: items.map((item: Item, n) => ({ ...item, number: from + n }) as LogEntry) };
    }
  };
  const load = async (which: (known: Loaded, signal: AbortSignal) => Promise<readonly [from: number, to: number, edge: Edge]>, signal: AbortSignal): Promise<readonly LogEntry[]> => {
    const known = await join(signal);
    const [from, to, edge] = await which(known, signal);
    const stretch = from < to ? await read(known, from, to, edge, signal) : { from, entries: [] };
    const near = edge === 'last' ? stretch.from : stretch.from + stretch.entries.length;
    setLoaded((now) => ({ ...known, stretches: nearest(withStretch(now?.offset === known.offset ? now.stretches : [], stretch), near, most) }));
    return stretch.entries;
  };
  /** One at a time. */
  const begin = async <T>(what: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    asking.current?.abort();
    const mine = (asking.current = new AbortController());
    setState('loading');
    try {
      const done = await what(mine.signal);
      if (asking.current === mine) setState('');
      return done;
    } catch (failure) {
      if (asking.current === mine) setState(failure instanceof Moved || mine.signal.aborted ? '' : { said: saidBy(failure) });
      if (failure instanceof Moved) forget();
      throw failure;
    } finally {
      if (asking.current === mine) asking.current = undefined;
    }
  };
  const unlessBusy = (which: Parameters<typeof load>[0]): void => {
    if (!asking.current) begin((signal) => load(which, signal)).catch(() => undefined); // it is said beside the lines
  };
  return {
    pieces,
    left: here && Math.max(0, (pieces[0]?.from ?? 0) - here.offset),
    busy: state === 'loading',
    trouble: typeof state === 'object' ? state.said : '',
    epoch,
    offset: here?.offset,
    followed,
    earlier: () =>
      unlessBusy(async (known, signal) => {
        const before = known.stretches[0]?.from ?? (await endOfFirst(known, signal));
        return [Math.max(known.offset, before - step), before, 'last'];
      }),
    fill: ({ from, missing }, edge) =>
      unlessBusy(() => Promise.resolve(edge === 'first' ? [from, Math.min(from + missing, from + step), edge] : [Math.max(from, from + missing - step), from + missing, edge])),
    place: join,
    around: (place) =>
      begin((signal) =>
        load((known) => {
          const number = place + known.offset;
          return Promise.resolve([Math.max(known.offset, number - step / 4), Math.min(known.join.number, number + step / 4), number]);
        }, signal),
      ),
    onward: (place) =>
      begin(async (signal) => {
        let from = 0;
        const read = await load((known) => {
          from = place + known.offset;
          return Promise.resolve([from, Math.min(known.join.number, from + step), 'first']);
        }, signal);
        return read.length > 0 ? read : tail.filter(({ number }) => number >= from);
      }),
    forget,
    placeOf: (time) =>
      begin(async (signal) => {
        const known = await join(signal);
        if (!laterThan(known.join.time, time)) return undefined;
        const { index, stopped } = await ask({ view: 'lines', limit: 0, time }, signal);
        if (stopped) throw new Error(t.tooLong);
        return index;
      }),
  };

  /** Of several containers the first lines that are followed may be far before those from which on none is missing: it goes on from there. */
  async function endOfFirst({ join: { number }, offset }: Loaded, signal: AbortSignal): Promise<number> {
    const line = tail.find((entry) => entry.type === 'line');
    if (line?.type !== 'line' || number - line.number <= step / 2) return number;
    const { index } = await ask({ view: 'lines', limit: 0, time: line.time }, signal);
    return index === undefined ? number : Math.min(number, index + offset + step / 2);
  }
}

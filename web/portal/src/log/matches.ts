// Going from match to match through all of a log, also where its lines are not loaded.

import type { LogEntry } from '@kubecast/sdk';
import { useMemo, useRef, useState } from 'react';
import { formatNumber } from '../texts/format.ts';
import { matchesOf } from './find.ts';
import type { Mark } from './Lines.tsx';
import { isAbort, saidBy, type Ask, type Item } from './questions.ts';
import { isThat, useSearch, type Found } from './search.ts';
import { isLoaded } from './stretches.ts';
import { t } from './texts.ts';
import { Moved, type Whole } from './whole.ts';

interface MatchesOf {
  readonly ask: Ask;
  readonly whole: Whole;
  readonly search: string;
  /** There may be lines that are not loaded. */
  readonly beyond: boolean;
  /** The loaded ones, of which it is what is wanted of others. */
  readonly shown: readonly LogEntry[];
  readonly shows: (entries: readonly LogEntry[]) => readonly LogEntry[];
  readonly at: Mark | undefined;
  readonly setAt: (at: Mark) => void;
}

export interface Matches {
  readonly any: boolean;
  /** How many there are, and which one is marked. */
  readonly said: string;
  /** To the next, from where the reader is, or from the newest. */
  readonly go: (step: 1 | -1) => void;
}

export function useMatches({ ask, whole, search, beyond, shown, shows, at, setAt }: MatchesOf): Matches {
  const found = useSearch(ask, search, beyond, whole);
  const [seeking, setSeeking] = useState<'' | 'loading' | { readonly said: string }>('');
  const { pieces, offset, followed } = whole;
  const matches = found?.matches;
  const elsewhere = useMemo(() => {
    const items = new Map<number, Item>();
    for (const { index, item } of offset === undefined ? [] : (matches ?? [])) {
      const number = index + (offset ?? 0);
      const loaded = number >= followed || (pieces.length > 1 && isLoaded(pieces, number));
      if (!loaded && shows([{ ...item, number } as LogEntry]).length > 0) items.set(number, item);
    }
    return items;
    // eslint-disable-next-line react-hooks/exhaustive-deps -- what is shown changes with what it shows
  }, [matches, offset, followed, pieces, shown]);
  const numbers = useMemo(() => {
    const here = matchesOf(shown, search);
    if (!matches?.length) return here;
    // Before these lines what is followed has not those of all containers.
    return [...(pieces.length > 1 ? here : here.filter((number) => number >= followed)), ...elsewhere.keys()].sort((a, b) => a - b);
  }, [shown, search, matches, pieces, followed, elsewhere]);

  // What was written since the search, and is followed no more, nobody has looked through.
  const some = found?.state === 'some' || (found?.state === 'all' && offset !== undefined && followed > found.looked + offset);
  const wanted = useRef(0);
  const place = at ? numbers.indexOf(at.id) : -1;
  const go = (step: 1 | -1): void => {
    const before = at ? numbers.filter((one) => one < at.id).length : numbers.length;
    const next = step === 1 ? before + (place >= 0 ? 1 : 0) : before - 1;
    const number = numbers[(next + numbers.length) % Math.max(1, numbers.length)];
    if (number === undefined) return;
    const item = elsewhere.get(number);
    const mine = ++wanted.current; // whoever has gone on is not taken back
    setSeeking('');
    if (!item) {
      setAt({ id: number });
      return;
    }
    setSeeking('loading');
    whole.around(number - (offset ?? 0)).then(
      (entries) => {
        if (mine !== wanted.current) return;
        setSeeking('');
        if (isThat(entries.find((entry) => entry.number === number), item)) setAt({ id: number });
        else whole.forget();
      },
      (failure: unknown) => {
        if (mine === wanted.current) setSeeking(failure instanceof Moved || isAbort(failure) ? '' : { said: saidBy(failure) });
      },
    );
  };
  const counted = numbers.length === 0 ? t.noMatch : (some ? t.matchOfSome : t.matchOf)(place < 0 ? '–' : formatNumber(place + 1), formatNumber(numbers.length));
  const said = search === '' ? '' : seeking === 'loading' ? t.loadingLines : seeking ? seeking.said : saidOf(found, counted, numbers.length > 0);
  return { any: numbers.length > 0, said, go };
}

function saidOf(found: Found | undefined, counted: string, any: boolean): string {
  switch (found?.state) {
    case undefined:
    case 'all':
      return counted;
    case 'asking':
      return t.searching(any ? counted : '');
    case 'some':
      return any ? counted : t.noMatchYet;
    default:
      return t.searchedLoaded(counted, found?.state.said ?? '');
  }
}

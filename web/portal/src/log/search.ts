// Finding a text in all of a log: what is loaded is looked through here, and the rest by the gateway.

import type { LogEntry } from '@kubecast/sdk';
import { useEffect, useState } from 'react';
import { saidBy, type Ask, type Item } from './questions.ts';
import type { Whole } from './whole.ts';

/** So long nobody has to have typed before the gateway is asked, in milliseconds. */
const settled = 250;
/** So many matches one answer has, and so many of these are asked for: each reads the log from its first line. */
const ofAnswer = 2_000;
const answers = 5;

export interface Match {
  readonly index: number;
  readonly item: Item;
}

export interface Found {
  readonly text: string;
  readonly epoch: number;
  readonly matches: readonly Match[];
  /** How many places were looked at. */
  readonly looked: number;
  /** `some`: there may be more, since the gateway reads no further for a question. */
  readonly state: 'asking' | 'all' | 'some' | { readonly said: string };
}

/** What the gateway finds; undefined: it is not asked. An answer that nobody waits for any more is broken off. */
export function useSearch(ask: Ask, text: string, wanted: boolean, { epoch, place }: Whole): Found | undefined {
  const [found, setFound] = useState<Found>();
  const asks = wanted && text !== '';
  useEffect(() => {
    if (!asks) return undefined;
    const waits = new AbortController();
    const { signal } = waits;
    let matches: readonly Match[] = [];
    let looked = 0;
    const tell = (state: Found['state']): void => {
      if (!signal.aborted) setFound({ text, epoch, matches, looked, state });
    };
    const read = async (): Promise<void> => {
      await place(signal);
      for (let n = 0; n < answers; n++) {
        const from = (matches.at(-1)?.index ?? -1) + 1;
        const answer = await ask({ view: 'search', search: text, ignoreCase: 'true', from, limit: ofAnswer }, signal);
        matches = [...matches, ...(answer.matches ?? [])];
        looked = answer.count ?? 0;
        if (answer.complete) {
          tell('all');
          return;
        }
        if (answer.stopped !== undefined && (answer.stopped !== 'size' || !answer.matches?.length)) break;
        tell('asking');
      }
      tell('some');
    };
    const timer = setTimeout(() => void read().catch((failure: unknown) => tell({ said: saidBy(failure) })), settled);
    return () => {
      clearTimeout(timer);
      waits.abort();
    };
    // eslint-disable-next-line react-hooks/exhaustive-deps -- the log is the same, and what is followed of it goes on
  }, [asks, text, epoch]);
  if (!asks) return undefined;
  return found?.text === text && found.epoch === epoch ? found : { text, epoch, matches: [], looked: 0, state: 'asking' };
}

/** Whether an item is what the entry with its number is: places may have become others meanwhile. */
export const isThat = (entry: LogEntry | undefined, item: Item): boolean => entry !== undefined && keyOf(entry) === keyOf(item);
const keyOf = (one: Item | LogEntry): string => JSON.stringify([one.pod, one.container, 'time' in one && one.time, 'text' in one && one.text]);

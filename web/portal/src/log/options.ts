// How somebody likes to read logs; this browser remembers it for all of them.

import { useState } from 'react';
import { levels, type Level } from './levels.ts';

export interface Options {
  readonly wrap: boolean;
  readonly times: boolean;
  /** Only lines that are at least so bad; empty: all. */
  readonly level: Level | '';
}

const key = 'kubecast.log';

function kept(): Options {
  let said: Partial<Record<keyof Options, unknown>> = {};
  try {
    said = (JSON.parse(localStorage.getItem(key) ?? '{}') ?? {}) as typeof said;
  } catch {
    // nothing is remembered, or somebody else wrote there
  }
  // A line that runs out of a phone's screen has no words left on it.
  const wrap = typeof said.wrap === 'boolean' ? said.wrap : matchMedia('(max-width: 700px)').matches;
  return { wrap, times: said.times !== false, level: levels.find((one) => one === said.level) ?? '' };
}

export function useOptions(): readonly [Options, (change: Partial<Options>) => void] {
  const [options, setOptions] = useState(kept);
  const change = (part: Partial<Options>): void => {
    const next = { ...options, ...part };
    setOptions(next);
    try {
      localStorage.setItem(key, JSON.stringify(next));
    } catch {
      // it counts as long as the page is there
    }
  };
  return [options, change];
}

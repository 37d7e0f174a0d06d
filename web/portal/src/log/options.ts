// How somebody likes to read logs, which this browser remembers for all of them; and which lines, which is of one page.

import type { Kubecast } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useState } from 'react';
import type { View } from '../view/view.ts';
import type { Level } from './levels.ts';

export interface Options {
  readonly wrap: boolean;
  readonly times: boolean;
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
  return { wrap, times: said.times !== false };
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

/** Where a level was chosen last. */
const chosen = new WeakMap<Kubecast, { readonly page: string; readonly level: Level | '' }>();

/**
 * Only lines that are at least so bad; empty: all. On another page nobody would know that lines are
 * missing; whoever goes back to this one, or from its pods to their log, finds it as they left it.
 */
export function useLevel({ cluster, page: name, kind, object }: View): readonly [Level | '', (level: Level | '') => void] {
  const kc = useKubecast();
  const page = [cluster, name, kind, object?.namespace, object?.name, object?.uid].join('/');
  const before = chosen.get(kc);
  const [level, setLevel] = useState(before?.page === page ? before.level : '');
  const choose = (next: Level | ''): void => {
    chosen.set(kc, { page, level: next });
    setLevel(next);
  };
  return [level, choose];
}

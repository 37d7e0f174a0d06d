// How close to each other the rows of tables stand. Unlike the language it changes while the page is there: in all tabs at once.

import { useSyncExternalStore } from 'react';
import { remembered } from '../texts/language.ts';

export const densities = ['comfortable', 'compact'] as const;
export type Density = (typeof densities)[number];

const key = 'kubecast.density';

/** Those of `--row` and `--row-narrow` in ../theme/tokens.css: where a row stands is computed here. */
export const rowHeights: Readonly<Record<Density, { readonly wide: number; readonly narrow: number }>> = {
  comfortable: { wide: 34, narrow: 54 },
  compact: { wide: 26, narrow: 44 },
};

export const rowHeightOf = (density: Density, narrow: boolean): number => rowHeights[density][narrow ? 'narrow' : 'wide'];

const listeners = new Set<() => void>();
/** What was chosen where the browser keeps nothing: it counts as long as the page is there. */
let unkept: Density | undefined;

const current = (): Density => unkept ?? densities.find((one) => one === remembered(key)) ?? 'comfortable';

function subscribe(listener: () => void): () => void {
  const elsewhere = (event: StorageEvent): void => {
    if (event.key !== key && event.key !== null) return;
    unkept = undefined;
    listener();
  };
  listeners.add(listener);
  window.addEventListener('storage', elsewhere);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('storage', elsewhere);
  };
}

export const useDensity = (): Density => useSyncExternalStore(subscribe, current);

export function chooseDensity(next: Density): void {
  try {
    localStorage.setItem(key, next);
    unkept = undefined;
  } catch {
    unkept = next;
  }
  for (const listener of [...listeners]) listener();
}

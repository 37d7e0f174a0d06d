// One clock for the page: every second, on the second, and only while somebody looks at it.

import { useSyncExternalStore } from 'react';

const listeners = new Set<() => void>();
let now = Date.now();
let timer: ReturnType<typeof setTimeout> | undefined;

function tick(): void {
  now = Date.now();
  for (const listener of [...listeners]) listener();
  timer = listeners.size > 0 ? setTimeout(tick, 1_000 - (Date.now() % 1_000)) : undefined;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  timer ??= setTimeout(tick, 0);
  return () => listeners.delete(listener);
}

/** Milliseconds since the epoch, renewed each second. */
export function useNow(): number {
  return useSyncExternalStore(subscribe, () => now);
}

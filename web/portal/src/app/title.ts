// The browser's title, of which a page tells a part: how what it shows is doing, so that many tabs can be told apart.

import { useEffect, useSyncExternalStore } from 'react';
import { t } from './texts.ts';

let told = '';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

function tell(text: string): void {
  told = text;
  for (const listener of listeners) listener();
}

/** What the shown page tells in place of its name; empty: nothing yet. */
export function useToldTitle(text: string): void {
  useEffect(() => {
    tell(text);
    return () => tell('');
  }, [text]);
}

/** Keeps the browser's title: the page's name, unless it tells more, and before it how much is unread. */
export function useTitle(name: string, cluster: string, unread: number): void {
  const more = useSyncExternalStore(subscribe, () => told);
  useEffect(() => {
    document.title = [unread > 99 ? t.unreadMany : unread > 0 && t.unread(unread), `${more || name}${cluster && ` · ${cluster}`} · Kubecast`].filter(Boolean).join(' ');
  }, [more, name, cluster, unread]);
}

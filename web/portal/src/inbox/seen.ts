// What somebody has seen of their own jobs on a page needs no word in the inbox any more.

import type { Inbox, InboxSnapshot, JobNotification } from '@kubecast/sdk';
import { useEffect, useRef, useSyncExternalStore } from 'react';
import type { View } from '../view/view.ts';

/** The unread notifications of each job, by its uid. */
export function unreadOf(items: readonly JobNotification[]): ReadonlyMap<string, readonly string[]> {
  const ids = new Map<string, string[]>();
  for (const { id, read, transition, digest } of items) {
    if (read) continue;
    for (const uid of new Set([...(transition ? [transition] : []), ...digest].map((one) => one.uid))) ids.set(uid, [...(ids.get(uid) ?? []), id]);
  }
  return ids;
}

/** Which run a job's page shows. An address without a uid is that of whichever has the name now, and only its page knows which that is. */
const shown = { uid: undefined as string | undefined, listeners: new Set<() => void>() };

const onShown = (listener: () => void): (() => void) => {
  shown.listeners.add(listener);
  return () => void shown.listeners.delete(listener);
};

/** A page says which run it shows, as long as it does; undefined: it does not know yet. */
export function useShows(uid: string | undefined): void {
  useEffect(() => {
    const tell = (next: string | undefined): void => {
      shown.uid = next;
      for (const listener of shown.listeners) listener();
    };
    tell(uid);
    return () => tell(undefined);
  }, [uid]);
}

/** Of the run that is on screen there is nothing to be told. A digest is of others, too. */
function seenOn({ page, object }: View, items: readonly JobNotification[], uid: string | undefined): readonly string[] {
  if (page !== 'jobs' || !object) return [];
  return items.filter(({ read, transition }) => !read && uid !== undefined && transition?.uid === uid).map(({ id }) => id);
}

/** Marks as read what is on screen while somebody looks, each once: a gateway that refuses is not asked again and again. */
export function useSeen(view: View, { data: items, markRead }: Pick<Inbox & InboxSnapshot, 'data' | 'markRead'>): void {
  const looks = useSyncExternalStore(onVisibility, isVisible);
  const uid = useSyncExternalStore(onShown, () => shown.uid);
  const asked = useRef(new Set<string>());
  useEffect(() => {
    const ids = looks ? seenOn(view, items, view.object?.uid ?? uid).filter((id) => !asked.current.has(id)) : [];
    if (ids.length === 0) return;
    for (const id of ids) asked.current.add(id);
    markRead({ ids }).catch(() => undefined); // they stay unread, then
  }, [looks, view, items, uid, markRead]);
}

const isVisible = (): boolean => document.visibilityState === 'visible';

function onVisibility(listener: () => void): () => void {
  document.addEventListener('visibilitychange', listener);
  return () => document.removeEventListener('visibilitychange', listener);
}

// The browser's own notices: each once in a browser, whatever number of tabs it has, and whether one of them is looked at or not.

import type { Inbox, JobNotification } from '@kubecast/sdk';
import { ownName } from '../session/base.ts';
import { inWordsOf, saidOf } from '../state/said.ts';
import { stateName } from '../state/texts.ts';
import { t } from './texts.tsx';

/** What the tabs of a browser remember together, once the user wants notices. */
interface Kept {
  /** The newest notification of which one was shown, or none had to be; empty: there were none. */
  readonly id: string;
  readonly at: number;
  /** When the tab that shows them was last there, in milliseconds since the epoch. */
  readonly seen: number;
}

const keyOf = (user: string): string => ownName(`kubecast.notices.${user}`);

function kept(user: string): Kept | undefined {
  try {
    const { id, at, seen } = JSON.parse(localStorage.getItem(keyOf(user)) ?? 'null') as Partial<Kept>;
    return typeof id === 'string' && typeof at === 'number' && typeof seen === 'number' ? { id, at, seen } : undefined;
  } catch {
    return undefined;
  }
}

function keep(user: string, items: readonly JobNotification[]): void {
  localStorage.setItem(keyOf(user), JSON.stringify({ id: items[0]?.id ?? '', at: items[0]?.at ?? 0, seen: Date.now() } satisfies Kept));
}

/** Whether this browser has such a thing, and may still be asked. */
export const noticesPossible = (): boolean => 'Notification' in globalThis && 'locks' in navigator && Notification.permission !== 'denied';

export const noticesOn = (user: string): boolean => noticesPossible() && Notification.permission === 'granted' && kept(user) !== undefined;

/** Asks the user, if the browser does not know yet. What is there already is not shown. */
export async function turnNoticesOn(user: string, items: readonly JobNotification[]): Promise<boolean> {
  if ((await Notification.requestPermission()) !== 'granted') return false;
  keep(user, items);
  return true;
}

export const turnNoticesOff = (user: string): void => localStorage.removeItem(keyOf(user));

/** Those that came after what was shown last, the oldest first. */
export function due(items: readonly JobNotification[], last: Pick<Kept, 'id' | 'at'>): JobNotification[] {
  const known = items.findIndex(({ id }) => id === last.id);
  const newer = known === -1 ? items.filter(({ at }) => at > last.at) : items.slice(0, known);
  return newer.filter(({ read, silent }) => !read && !silent).reverse();
}

/** A tab that was there so long ago, in milliseconds, is followed by the next one without a gap. */
const followed = 180_000;
const beat = 30_000;
/** More at once are told as one. */
const mostAtOnce = 3;

export interface NoticesOptions {
  readonly user: string;
  /** The page's own, on its stream; and one that is followed while nobody looks at the page, and its stream rests. */
  readonly inbox: Inbox;
  readonly aside: Inbox;
  /** A notice was clicked; undefined: of several. */
  readonly onOpen: (item: JobNotification | undefined) => void;
}

/**
 * Shows notices, if this tab is the one of its browser that does; and tells the other tabs how many are unread, of which those that
 * nobody looks at follow nothing. Returns how to end that, whereupon another tab takes over.
 */
export function keepNotices(options: NoticesOptions): () => void {
  const over = new AbortController();
  const locks = (navigator as { locks?: LockManager }).locks; // not there without TLS
  const until = (): Promise<void> =>
    new Promise((resolve) => {
      const stop = follow(options);
      over.signal.addEventListener('abort', () => {
        stop();
        resolve();
      });
    });
  locks?.request(ownName(`kubecast notices ${options.user}`), { signal: over.signal }, until).catch(() => undefined);
  return () => over.abort();
}

function follow({ user, inbox, aside, onOpen }: NoticesOptions): () => void {
  const others = new BroadcastChannel(channelOf(user));
  let begun = false;
  let unread: number | undefined;
  let from = inbox;
  let leave = (): void => undefined;
  const check = (): void => {
    const snapshot = from.getSnapshot();
    if (snapshot.status !== 'live') return;
    if (unread !== snapshot.unread) others.postMessage((unread = snapshot.unread));
    const last = kept(user);
    // What came before this browser looked at all is no news.
    const fresh = last && (begun || Date.now() - last.seen < followed) ? due(snapshot.data, last) : [];
    begun = true;
    if (!last) return;
    if (last.id !== (snapshot.data[0]?.id ?? '') || Date.now() - last.seen > beat) keep(user, snapshot.data);
    if (Notification.permission === 'granted') show(fresh, (item) => {
      if (item) inbox.markRead({ ids: [item.id] }).catch(() => undefined);
      onOpen(item);
    });
  };
  const look = (): void => {
    leave();
    from = document.visibilityState === 'hidden' ? aside : inbox;
    leave = from.subscribe(check);
    check();
  };
  look();
  document.addEventListener('visibilitychange', look);
  const timer = setInterval(check, beat);
  return () => {
    document.removeEventListener('visibilitychange', look);
    clearInterval(timer);
    leave();
    others.close();
  };
}

function show(items: readonly JobNotification[], onClick: (item: JobNotification | undefined) => void): void {
  const notice = (title: string, options: NotificationOptions, item: JobNotification | undefined): void => {
    try {
      const shown = new Notification(title, options);
      shown.onclick = () => {
        shown.close();
        window.focus();
        onClick(item);
      };
    } catch {
      // Some browsers let only service workers show them.
    }
  };
  if (items.length > mostAtOnce) {
    const last = items.at(-1);
    notice(t.several(items.length), { body: items.slice(-mostAtOnce).map(titleOf).join('\n'), tag: last?.id ?? '' }, undefined);
    return;
  }
  for (const item of items) notice(titleOf(item), { body: bodyOf(item), tag: item.id }, item);
}

const titleOf = ({ title, transition, digest, more }: JobNotification): string =>
  transition ? t.title(transition.name, stateName(transition.to), inWordsOf(title, transition.reason)) : t.digest(digest.length + more, title);

/** Where a job is, and why it came to this. That all went well needs no reason. */
function bodyOf({ transition }: JobNotification): string {
  if (!transition || transition.to === 'Succeeded') return transition?.namespace ?? '';
  return [transition.namespace, transition.cause ? saidOf(transition.cause) : [inWordsOf(transition.reason, transition.reason), transition.message].filter(Boolean).join(' · ')].filter(Boolean).join(' · ');
}

const channelOf = (user: string): string => ownName(`kubecast.unread.${user}`);

/** Is told how many are unread by the tab that knows. Returns how to end that. */
export function onUnread(user: string, listener: (unread: number) => void): () => void {
  const others = new BroadcastChannel(channelOf(user));
  others.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (typeof data === 'number') listener(data);
  };
  return () => others.close();
}

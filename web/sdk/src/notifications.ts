// What the caller was told of their jobs; see "Notifications" in wire.md.

import { messageOf } from './connection.ts';
import { readTransition, type Transition } from './history.ts';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import { Listeners } from './listeners.ts';
import { isJsonObject, listOf, text, type JsonObject } from './object.ts';
import { Sequence } from './sequence.ts';
import type { Freshness } from './state.ts';
import type { Source } from './store.ts';

/** What the caller is told of a job, or of several. */
export interface JobNotification {
  readonly id: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** The state that a job came to; `Digest`: several did, and are told together. */
  readonly kind: string;
  readonly title: string;
  /** Undefined of a digest. */
  readonly transition: Transition | undefined;
  /** Of a digest, the first of them; `more` are not told. */
  readonly digest: readonly Transition[];
  readonly more: number;
  /** It came during a pause: nothing is to pop up for it. */
  readonly silent: boolean;
  readonly read: boolean;
}

/** All up to one, the older ones included; or just these. */
export type Which = { readonly upTo: string } | { readonly ids: readonly string[] };

/** As {@link WatchSnapshot}, and immutable as that is. */
export interface InboxSnapshot extends Freshness {
  /** The newest first: 200 of what there was, and what has come since. */
  readonly data: readonly JobNotification[];
  /** @deprecated It is `data`, as everywhere. */
  readonly items: readonly JobNotification[];
  /** How many of these are unread. */
  readonly unread: number;
}

/** What a caller wants to be told of. */
export interface NotificationSettings {
  /** The states of which the user wants to be told. */
  readonly states: readonly string[];
  /** How long notifications are gathered to be told as one, such as `5m`; `0s`: they are not. */
  readonly digest: string;
  /** Until then all that comes is silent; in milliseconds since the epoch. */
  readonly pausedUntil: number | undefined;
}

/** Follows the notifications while somebody has subscribed. All of it may be passed around unbound. */
export interface Inbox {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => InboxSnapshot;
  readonly getServerSnapshot: () => InboxSnapshot;
  readonly retry: () => void;
  /** At once here, and soon in all tabs and on all devices. Rejects, and takes it back here, if the gateway refuses. */
  readonly markRead: (which: Which) => Promise<void>;
  readonly settings: () => Promise<NotificationSettings>;
  /** Resolves with what is kept. */
  readonly setSettings: (settings: NotificationSettings) => Promise<NotificationSettings>;
}

/** The gateway has told that these are read; or the user has said so here, and `settled`: the gateway has agreed. */
interface Mark {
  readonly upTo: string;
  readonly ids: readonly string[];
  settled: boolean;
}

const source: Source<JobNotification | Mark> = {
  path: '/notifications?limit=200',
  sink: (changed) => new Sequence(changed, { read, keep: 1_000, partial: false }),
};

const inboxes = new WeakMap<Kubecast, Inbox>();

/**
 * The caller's inbox, always the same one.
 *
 * ```ts
 * const inbox = inboxOf(kc);
 * inbox.subscribe(() => render(inbox.getSnapshot().data));
 * ```
 */
export function inboxOf(kc: Kubecast): Inbox {
  const present = inboxes.get(kc);
  if (present) return present;
  const made = make(kc);
  inboxes.set(kc, made);
  return made;
}

function make(kc: Kubecast): Inbox {
  const watch: Watch<JobNotification | Mark> = kc.follow(source);
  const listeners = new Listeners();
  let marks: readonly Mark[] = [];
  let shown: { readonly of: WatchSnapshot<JobNotification | Mark>; readonly marks: readonly Mark[]; readonly snapshot: InboxSnapshot } | undefined;
  const setMarks = (next: readonly Mark[]): void => {
    marks = next;
    listeners.tell();
  };
  const show = (of: WatchSnapshot<JobNotification | Mark>): InboxSnapshot => {
    if (shown?.of === of && shown.marks === marks) return shown.snapshot;
    const all = new Map<string, JobNotification>();
    for (const entry of of.data) {
      if (!('title' in entry)) apply(all, entry);
      // One that is told again is no less read.
      else all.set(entry.id, { ...entry, read: entry.read || (all.get(entry.id)?.read ?? false) });
    }
    // What the gateway has told by now needs no more be remembered.
    marks = marks.filter((mark) => apply(all, mark) || !mark.settled);
    const data = [...all.values()].reverse();
    const { namespaces, ...freshness } = of;
    // eslint-disable-next-line @typescript-eslint/no-deprecated -- for who has written it
    shown = { of, marks, snapshot: { ...freshness, data, items: data, unread: data.filter(({ read }) => !read).length } };
    return shown.snapshot;
  };
  return {
    subscribe: (listener) => {
      const ends = [listeners.subscribe(listener), watch.subscribe(listener)];
      return () => ends.forEach((end) => end());
    },
    getSnapshot: () => show(watch.getSnapshot()),
    getServerSnapshot: () => show(watch.getServerSnapshot()),
    retry: watch.retry,
    markRead: async (which) => {
      const mark: Mark = { upTo: '', ids: [], ...which, settled: false };
      setMarks([...marks, mark]);
      try {
        await ask(kc, 'POST', '/notifications/read', which);
        mark.settled = true;
      } catch (error) {
        setMarks(marks.filter((one) => one !== mark));
        throw error;
      }
    },
    settings: async () => readSettings(await ask(kc, 'GET', '/notifications/settings')),
    setSettings: async (settings) => {
      const { states, digest, pausedUntil } = settings;
      const kept = await ask(kc, 'PUT', '/notifications/settings', { states, digest, pausedUntil: pausedUntil === undefined ? null : new Date(pausedUntil).toISOString() });
      return kept === undefined ? settings : readSettings(kept);
    },
  };
}

/** Marks what it names as read. Returns whether anything was not. */
function apply(all: Map<string, JobNotification>, { upTo, ids }: Mark): boolean {
  const before = [...all.keys()];
  // What it is named after may not be here: then numbers tell what comes before it.
  const last = before.indexOf(upTo);
  const named = [...ids, ...before.filter((id, n) => (last === -1 ? upTo !== '' && Number(id) <= Number(upTo) : n <= last))];
  const unread = named.flatMap((id) => all.get(id) ?? []).filter((item) => !item.read);
  for (const item of unread) all.set(item.id, { ...item, read: true });
  return unread.length > 0;
}

function read(type: string, data: JsonObject): JobNotification | Mark | undefined {
  if (type === 'read') return { upTo: text(data.upTo), ids: Array.isArray(data.ids) ? data.ids.map(text) : [], settled: true };
  if (type !== 'notification') return undefined;
  const { transition, digest, more } = data;
  return {
    id: text(data.id),
    at: Date.parse(text(data.at)),
    kind: text(data.kind),
    title: text(data.title),
    transition: isJsonObject(transition) ? readTransition(transition) : undefined,
    digest: listOf(digest, readTransition) ?? [],
    more: typeof more === 'number' ? more : 0,
    silent: data.silent === true,
    read: text(data.readAt) !== '',
  };
}

function readSettings(data: unknown): NotificationSettings {
  const { states, digest, pausedUntil } = isJsonObject(data) ? data : {};
  const until = Date.parse(text(pausedUntil));
  return { states: Array.isArray(states) ? states.map(text) : [], digest: text(digest), pausedUntil: Number.isNaN(until) ? undefined : until };
}

/** Rejects with the gateway's own words. */
function ask(kc: Kubecast, method: string, path: string, body?: object): Promise<unknown> {
  const init = body ? { method, headers: { 'Content-Type': 'application/json' }, body: JSON.stringify(body) } : { method };
  return kc.request(path, init, async (response) => {
    const said = await response.text();
    if (!response.ok) throw new Error(messageOf(said, response));
    return said === '' ? undefined : (JSON.parse(said) as unknown);
  });
}

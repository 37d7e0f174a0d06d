// What the mock tells by number: the notifications of its one user; and queues, each told as a whole. Also what the history is made of.

import { seededRandom } from './random.ts';

export interface Entry {
  readonly seq: number;
  readonly type: string;
  readonly data: object;
}

export class MockLog {
  seq = 0;
  /** Each entry says all: no end of them is told, and there are no positions. */
  readonly whole: boolean = false;
  /** Positions below it cannot be replayed. */
  floor = 0;
  readonly entries: Entry[] = [];
  readonly watchers = new Set<(entry: Entry) => void>();

  /** What comes first without a position, the oldest of it first. */
  newest(limit: number, matches: (entry: Entry) => boolean = () => true): Pick<Entry, 'type' | 'data'>[] {
    return limit > 0 ? this.entries.filter(matches).slice(-limit) : [];
  }

  /** What `synced` says beside its numbers. */
  synced(): object {
    return {};
  }

  add(type: string, data: object): void {
    const entry = { seq: ++this.seq, type, data };
    this.entries.push(entry);
    for (const watcher of this.watchers) watcher(entry);
  }

  /** Forgets all but the newest. */
  trim(most: number): void {
    const gone = this.entries.splice(0, Math.max(0, this.entries.length - most));
    this.floor = gone.at(-1)?.seq ?? this.floor;
  }

  /** Each position that was given is answered with `reset`. */
  expire(): void {
    this.floor = ++this.seq;
  }

  /** Forgets what was, so that every older position is answered with `reset`. */
  compact(): void {
    this.floor = this.seq;
    this.entries.length = 0;
  }
}

const letters = 'abcdefghijklmnopqrstuvwxyz234567';

/** What stands for a number that is nobody's business: the same each time, and without an order. */
export function sealed(of: string, number: number): string {
  const random = seededRandom(number * 31 + of.length);
  return Array.from({ length: 26 }, () => letters[Math.floor(random() * letters.length)]).join('');
}

export type Told = { readonly id: string; readonly title: string; readonly kind: string; readonly [key: string]: unknown };

/** What a caller may see of a notification; undefined: nothing. */
export type InboxView = (item: Told) => Told | undefined;

const whole: InboxView = (item) => item;

/** By the rules of "Notifications" in the wire contract. */
export class MockInbox extends MockLog {
  readonly items = new Map<string, Told>();
  settings: unknown = { states: ['Succeeded', 'Failed', 'Retrying'], digest: '0s', pausedUntil: null };
  /** Answers what is to be changed with this status, while it is set. */
  refuseWith: number | undefined;

  get unread(): number {
    return this.all(true).length;
  }

  /** Tells of a job in `namespace` (`team-a`), or with `kind: 'Digest'` of several. */
  tell(name: string, kind: string, { namespace = 'team-a', ...more }: { readonly namespace?: string; readonly [key: string]: unknown } = {}): Told {
    const at = new Date().toISOString();
    const id = String(this.seq + 1);
    const of = { cluster: 'default', resource: 'jobs.batch', namespace, namespaceUID: null, name, uid: name, resourceVersion: '0' };
    const transition = { seq: sealed('notification', Number(id)), ...of, from: 'Running', to: kind, at, observedAt: at, late: false, attempt: 1, reason: '', message: '', owner: 'mara', cause: null };
    const item = { id, at, kind, title: `${name} ${kind.toLowerCase()}`, transition, digest: [], more: 0, silent: false, readAt: null, ...more };
    this.items.set(id, item);
    this.add('notification', item);
    return item;
  }

  /** @param view of whoever has read them: what they may not see stays as it is */
  read(which: { readonly upTo?: string; readonly ids?: readonly string[] }, view: InboxView = whole): void {
    const named = [...this.items.values()].filter((item) => view(item)).filter(({ id }) => which.ids?.includes(id) ?? Number(id) <= Number(which.upTo));
    for (const item of named) if (item.readAt === null) this.items.set(item.id, { ...item, readAt: new Date().toISOString() });
    this.add('read', which);
  }

  /** All of it that may be seen, the newest first. */
  all(unread: boolean, view: InboxView = whole): Told[] {
    return [...this.items.values()].reverse().flatMap((item) => view(item) ?? []).filter(({ readAt }) => !unread || readAt === null);
  }

  list(): object {
    return { items: this.all(false), unread: this.unread, continue: '' };
  }
}

export type ToldQueue = { readonly name: string; readonly namespace?: string; readonly jobs: readonly object[]; readonly [key: string]: unknown };

/** A queue and who waits in it, or the list of queues. */
export class MockQueue extends MockLog {
  override readonly whole = true;

  get last(): object {
    return this.entries[0]?.data ?? {};
  }

  override newest(): Pick<Entry, 'type' | 'data'>[] {
    return this.entries;
  }

  put(data: object): void {
    this.entries.length = 0;
    this.add('queue', data);
  }
}

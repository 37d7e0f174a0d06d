// What the mock tells once and by number: the transitions of jobs, and the notifications of its one user; and queues, each told as a whole.

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
  newest(limit: number): Pick<Entry, 'type' | 'data'>[] {
    return limit > 0 ? this.entries.slice(-limit) : [];
  }

  add(type: string, data: object): void {
    const entry = { seq: ++this.seq, type, data };
    this.entries.push(entry);
    for (const watcher of this.watchers) watcher(entry);
  }

  /** Forgets what was, so that every older position is answered with `reset`. */
  compact(): void {
    this.floor = this.seq;
    this.entries.length = 0;
  }
}

export type Told = { readonly id: string; readonly title: string; readonly kind: string; readonly [key: string]: unknown };

/** By the rules of "Notifications" in the wire contract. */
export class MockInbox extends MockLog {
  readonly items = new Map<string, Told>();
  settings: unknown = { states: ['Succeeded', 'Failed', 'Retrying'], digest: '0s', pausedUntil: null };
  /** Answers what is to be changed with this status, while it is set. */
  refuseWith: number | undefined;

  override newest(limit: number): Pick<Entry, 'type' | 'data'>[] {
    const all = [...this.items.values()];
    return limit > 0 ? all.slice(-limit).map((data) => ({ type: 'notification', data })) : [];
  }

  /** Tells of a job, or with `kind: 'Digest'` of several. */
  tell(name: string, kind: string, more: object = {}): Told {
    const at = new Date().toISOString();
    const id = String(this.seq + 1);
    const transition = { seq: id, cluster: 'default', resource: 'jobs.batch', namespace: 'team-a', name, uid: name, from: 'Running', to: kind, at, observedAt: at, late: false, attempt: 1, reason: '', message: '', owner: 'mara' };
    const item = { id, at, kind, title: `${name} ${kind.toLowerCase()}`, transition, digest: null, silent: false, readAt: null, ...more };
    this.items.set(id, item);
    this.add('notification', item);
    return item;
  }

  read(which: { readonly upTo?: string; readonly ids?: readonly string[] }): void {
    const named = [...this.items.values()].filter(({ id }) => which.ids?.includes(id) ?? Number(id) <= Number(which.upTo));
    for (const item of named) this.items.set(item.id, { ...item, readAt: new Date().toISOString() });
    this.add('read', { upTo: which.upTo ?? null, ids: which.ids ?? null });
  }

  list(): object {
    const items = [...this.items.values()].reverse();
    return { items, unread: items.filter(({ readAt }) => readAt === null).length, continue: '' };
  }
}

export type PastJob = { readonly uid: string; readonly name: string; readonly namespace: string; readonly state: string; readonly [key: string]: unknown };

/** The history of its user's jobs. */
export class MockPast extends MockLog {
  readonly jobs = new Map<string, PastJob>();

  /** A job comes to a state. */
  record(name: string, state: string, more: object = {}): void {
    const at = new Date().toISOString();
    const of = { cluster: 'default', resource: 'jobs.batch', namespace: 'team-a', name, uid: name, attempt: 1, reason: '', message: '', owner: 'mara' };
    const from = this.jobs.get(name)?.state ?? null;
    this.jobs.set(name, { queue: '', createdAt: at, startedAt: null, endedAt: null, deletedAt: null, durations: {}, requests: {}, reasons: [], progress: null, parent: null, children: 0, ...this.jobs.get(name), ...of, state, since: at, ...more });
    this.add('transition', { ...of, seq: String(this.seq + 1), from, to: state, at, observedAt: at, late: false, ...more });
  }

  list(query: URLSearchParams): object {
    // Neither pods nor sums.
    if ((query.get('view') ?? 'jobs') !== 'jobs') return { items: [], continue: '' };
    const are = (name: string, value: unknown): boolean => query.get(name)?.split(',').includes(String(value)) ?? true;
    const asked = ({ state, uid, cause, parent }: PastJob): boolean =>
      are('state', state) && are('uid', uid) && are('cause', (cause as { reason?: string } | null)?.reason) && are('parent', (parent as { uid?: string } | null)?.uid);
    return { items: [...this.jobs.values()].reverse().filter(asked), continue: '' };
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

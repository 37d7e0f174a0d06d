// Kubernetes objects to table rows: each object is read once, and a row knows when its state changed.

import type { KubeObject, WatchSnapshot } from '@kubecast/sdk';

export interface Row {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly state: string;
  readonly created: number;
}

export type Tracked<R extends Row> = R & {
  /** When the row last came to be in its state before our eyes; 0: it was so when we first looked. */
  readonly changedAt: number;
};

interface Known<T extends KubeObject, R extends Row> {
  readonly object: T;
  readonly row: Tracked<R>;
}

/** Reads each object once, and knows since when it has been in its state. */
export class Tracker<T extends KubeObject, R extends Row> {
  readonly #read: (object: T) => R;
  #known = new Map<string, Known<T, R>>();

  constructor(read: (object: T) => R) {
    this.#read = read;
  }

  /** `news`: a row that was not there before has just come to its state, and was not merely out of sight. */
  read(objects: readonly T[], news: boolean): readonly Tracked<R>[] {
    const now = Date.now();
    const known = new Map<string, Known<T, R>>();
    const rows: Tracked<R>[] = [];
    for (const object of objects) {
      const before = this.#known.get(object.metadata.uid);
      let entry = before;
      if (before?.object !== object || !entry) {
        const row = this.#read(object);
        const same = before ? before.row.state === row.state : !news;
        entry = { object, row: { ...row, changedAt: same ? (before?.row.changedAt ?? 0) : now } };
      }
      known.set(object.metadata.uid, entry);
      rows.push(entry.row);
    }
    this.#known = known;
    return rows;
  }
}

/** The rows of one watch after the other: what is in sight of both stays on screen until the next one's snapshot is complete. */
export class Rows<T extends KubeObject, R extends Row> {
  readonly #tracker: Tracker<T, R>;
  #namespace: string | undefined;
  /** Of the watch that was complete last. */
  #before: readonly T[] = [];
  #complete = false;

  constructor(read: (object: T) => R) {
    this.#tracker = new Tracker(read);
  }

  /** What is there of a namespace; empty: of all. */
  read({ data, status }: Pick<WatchSnapshot<T>, 'data' | 'status'>, namespace: string): readonly Tracked<R>[] {
    if (namespace !== this.#namespace) this.#complete = false;
    this.#namespace = namespace;
    if (status === 'loading') {
      const told = new Set(data.map(({ metadata }) => metadata.uid));
      const kept = this.#before.filter(({ metadata }) => (namespace === '' || metadata.namespace === namespace) && !told.has(metadata.uid));
      return this.#tracker.read(kept.length > 0 ? [...kept, ...data] : data, false);
    }
    // What comes with the first snapshot was not there before, and is no news.
    const rows = this.#tracker.read(data, this.#complete);
    this.#complete = true;
    this.#before = data;
    return rows;
  }
}

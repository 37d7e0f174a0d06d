// Kubernetes objects to table rows: each object is read once, and a row knows when its state changed.

import type { Collection, KubeObject, Observable, Snapshot } from '@kubecast/sdk';

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

export interface RowsSnapshot<R extends Row> {
  readonly rows: readonly Tracked<R>[];
  readonly phase: Snapshot<KubeObject>['phase'];
}

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

export class Rows<T extends KubeObject, R extends Row> implements Observable<RowsSnapshot<R>> {
  readonly subscribe: Collection<T>['subscribe'];
  readonly #collection: Collection<T>;
  readonly #tracker: Tracker<T, R>;
  #source: Snapshot<T> | undefined;
  #snapshot: RowsSnapshot<R> = { rows: [], phase: 'loading' };

  constructor(collection: Collection<T>, read: (object: T) => R) {
    this.#collection = collection;
    this.#tracker = new Tracker(read);
    this.subscribe = collection.subscribe;
  }

  readonly getSnapshot = (): RowsSnapshot<R> => {
    const source = this.#collection.getSnapshot();
    if (source === this.#source) return this.#snapshot;
    // While the first snapshot comes in, a row that was not there before is no news.
    const watching = this.#source !== undefined && this.#source.phase !== 'loading';
    this.#source = source;
    this.#snapshot = { rows: this.#tracker.read(source.items, watching), phase: source.phase };
    return this.#snapshot;
  };
}

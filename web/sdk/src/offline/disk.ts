// What is on disk: for each gateway and user a head, which says what is there and up to where it is known, and the rows. A transaction is
// written as a whole or not at all; what lacks something all the same is not read.

import { openDB, type DBSchema, type IDBPDatabase } from 'idb';

/** Where an owner's data is: the gateway, and the user. */
export type Owner = readonly [gateway: string, user: string];

/** One watch on disk. */
export interface WatchOnDisk {
  readonly path: string;
  /** Its name in the head's position; undefined: the position is not of these rows, which are from before. */
  readonly name: string | undefined;
  /** In milliseconds since the epoch. */
  readonly asOf: number;
  /** Rows are objects; else they are events of what is told as a whole. */
  readonly objects: boolean;
  /** What restricted it, as it was told; empty: nothing. */
  readonly visible: string;
  readonly namespaces: readonly string[] | undefined;
  /** The place and the length of the text of each segment. */
  readonly segments: readonly (readonly [n: number, length: number])[];
}

/** Written with each change of the rows, in the same transaction. */
export interface Head {
  /** Another one with each writing: whoever finds another than the last that they know has not written last. */
  readonly turn: string;
  /** Who writes, and until when nobody else does. */
  readonly writer: string;
  readonly until: number;
  readonly position: string;
  readonly names: number;
  /** When it is too old to be shown. */
  readonly expires: number;
  readonly watches: readonly WatchOnDisk[];
}

/** What is to be written of one watch. */
export interface Change {
  readonly path: string;
  /** None of what is there of it counts. */
  readonly whole: boolean;
  readonly texts: readonly (readonly [n: number, text: string])[];
  readonly gone: readonly number[];
}

interface Tables extends DBSchema {
  heads: { key: string[]; value: Head };
  rows: { key: (string | number)[]; value: string };
  /** By gateway, another text each time that something is cleared: who has begun before writes no more. */
  cleared: { key: string; value: string };
}

/** How long the browser may take to open it, in milliseconds: some never do. */
const patience = 2_000;
const all = ['heads', 'rows', 'cleared'] as const;

export class Disk {
  readonly #db: IDBPDatabase<Tables>;
  readonly owner: Owner;

  /** Throws where there is no IndexedDB, or one that is newer than this. `onGone`: another page, or the browser, wants it closed. */
  static async open(owner: Owner, onGone: () => void): Promise<Disk> {
    const opening = openDB<Tables>('kubecast', 1, {
      upgrade(db) {
        // What an older form has is asked for again.
        for (const name of [...db.objectStoreNames]) db.deleteObjectStore(name);
        for (const name of all) db.createObjectStore(name);
      },
      blocking(_, __, event) {
        (event.target as IDBDatabase).close();
        onGone();
      },
      terminated: onGone,
    });
    const timer = new Promise<undefined>((resolve) => setTimeout(resolve, patience));
    const db = await Promise.race([opening, timer]);
    if (!db) void opening.then((opened) => opened.close(), () => undefined);
    if (!db) throw new Error('the database does not open');
    return new Disk(db, owner);
  }

  private constructor(db: IDBPDatabase<Tables>, owner: Owner) {
    this.#db = db;
    this.owner = owner;
  }

  /**
   * What is there of the owner, and what was cleared last, with the texts of the watches that are wanted, as the head has them; undefined: not all of them
   * are there. Of the gateway's other users nothing stays, nor of anybody what is too old.
   */
  async begin(
    now: number,
    mark: string,
    wanted: (head: Head) => readonly WatchOnDisk[],
  ): Promise<{ head: Head | undefined; cleared: string; watches: readonly WatchOnDisk[]; texts: string[][] | undefined }> {
    const tx = this.#db.transaction(all, 'readwrite');
    tx.done.catch(() => undefined); // which is told below, or by what failed first
    const heads = tx.objectStore('heads');
    const [gateway, user] = this.owner;
    let cleared = (await tx.objectStore('cleared').get(gateway)) ?? '';
    for (const [where = '', whose = ''] of await heads.getAllKeys()) {
      const foreign = where === gateway && whose !== user;
      const head = await heads.get([where, whose]);
      if (!foreign && head && head.expires > now) continue;
      await heads.delete([where, whose]);
      await tx.objectStore('rows').delete(IDBKeyRange.bound([where, whose], [where, whose, []]));
      if (!foreign) continue;
      cleared = mark;
      await tx.objectStore('cleared').put(mark, gateway);
    }
    const head = await heads.get([...this.owner]);
    const watches = head ? wanted(head) : [];
    // Within the same transaction: behind it another page may write.
    const found = await Promise.all(watches.map(({ path }) => tx.objectStore('rows').getAll(this.#range(path))));
    await tx.done;
    const whole = watches.every(({ segments }, w) => segments.length === found[w]?.length && segments.every(([, length], n) => found[w]?.[n]?.length === length));
    return { head, cleared, watches, texts: whole ? found : undefined };
  }

  /** The texts of one watch, with what the head says of it by now; undefined: not all of them are there. */
  async look(path: string): Promise<{ watch: WatchOnDisk; texts: string[]; expires: number } | undefined> {
    const tx = this.#db.transaction(['heads', 'rows']);
    tx.done.catch(() => undefined);
    const [head, texts] = await Promise.all([tx.objectStore('heads').get([...this.owner]), tx.objectStore('rows').getAll(this.#range(path))]);
    const watch = head?.watches.find((one) => one.path === path);
    const whole = watch?.segments.length === texts.length && watch.segments.every(([, length], n) => texts[n]?.length === length);
    return head && watch && whole ? { watch, texts, expires: head.expires } : undefined;
  }

  /** The head alone. */
  head(): Promise<Head | undefined> {
    const tx = this.#db.transaction('heads');
    tx.done.catch(() => undefined);
    return tx.store.get([...this.owner]);
  }

  /**
   * Writes all of what `decide` makes of the head that is there, or nothing. Returns false, and writes nothing, if more was cleared than is known.
   */
  async write(cleared: string, decide: (present: Head | undefined) => { readonly head: Head; readonly changes: readonly Change[] } | undefined): Promise<boolean> {
    const tx = this.#db.transaction(all, 'readwrite');
    tx.done.catch(() => undefined); // which is told below, or by what failed first
    const heads = tx.objectStore('heads');
    const rows = tx.objectStore('rows');
    const mark = (await tx.objectStore('cleared').get(this.owner[0])) ?? '';
    const present = await heads.get([...this.owner]);
    const decided = mark === cleared ? decide(present) : undefined;
    if (decided) {
      const there = new Set(decided.head.watches.map(({ path }) => path));
      const writes: Promise<unknown>[] = [heads.put(decided.head, [...this.owner])];
      for (const { path } of present?.watches ?? []) if (!there.has(path)) writes.push(rows.delete(this.#range(path)));
      for (const { path, whole, texts, gone } of decided.changes) {
        if (!there.has(path)) continue;
        if (whole) writes.push(rows.delete(this.#range(path)));
        else for (const n of gone) writes.push(rows.delete([...this.owner, path, n]));
        for (const [n, text] of texts) writes.push(rows.put(text, [...this.owner, path, n]));
      }
      // One that fails aborts all, which `done` tells.
      for (const write of writes) write.catch(() => undefined);
    }
    await tx.done;
    return mark === cleared;
  }

  /** Nothing of the owner stays, and nobody who has begun before writes any more, but who knows the mark. Returns what was cleared last before. */
  async clear(mark: string): Promise<string> {
    const tx = this.#db.transaction(all, 'readwrite');
    tx.done.catch(() => undefined); // which is told below, or by what failed first
    const [gateway, user] = this.owner;
    const before = (await tx.objectStore('cleared').get(gateway)) ?? '';
    const writes = [
      tx.objectStore('cleared').put(mark, gateway),
      tx.objectStore('heads').delete([gateway, user]),
      tx.objectStore('rows').delete(IDBKeyRange.bound([gateway, user], [gateway, user, []])),
    ];
    for (const write of writes) write.catch(() => undefined);
    await tx.done;
    return before;
  }

  close(): void {
    this.#db.close();
  }

  #range(path: string): IDBKeyRange {
    return IDBKeyRange.bound([...this.owner, path], [...this.owner, path, []]);
  }
}

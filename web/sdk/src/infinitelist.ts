// A live list that grows page by page: all of it that is shown stays live, as live pages that reach from its beginning.

import { none } from './collection.ts';
import { notGrowing, type Grows, type Infinite } from './infinite.ts';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import { Listeners } from './listeners.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import type { Only } from './paths.ts';
import type { Resource } from './resource.ts';
import { isFinal, isSame, type Trouble } from './state.ts';

/** Which list; `limit` is how many rows come with each page, from 1 to 500. */
export type InfiniteListQuery<T extends KubeObject, F extends readonly string[]> = Omit<PageQuery<T, F>, 'offset'>;

/** What is shown of it: the rows from the first one on, in order, each of them once. */
export interface InfiniteListSnapshot<T> extends WatchSnapshot<T>, Infinite {
  /** How many there are, shown or not; undefined until the first page is complete. */
  readonly total?: number | undefined;
}

/** Followed while somebody has subscribed. All of it may be passed around unbound. */
export interface InfiniteList<T> extends Grows {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => InfiniteListSnapshot<T>;
  readonly getServerSnapshot: () => InfiniteListSnapshot<T>;
  readonly retry: () => void;
}

/** How many rows a live page has at most, and how many of these the next one has, too: rows move from one to the other, and neither is told at the same time. */
const pageSize = 500;
const overlap = 20;
/** How many rows stay live at most. */
const mostRows = 2_000;
/** Who comes back later, in milliseconds, begins with the first page. */
const keptTime = 30_000;
/** How many lists that nobody shows are kept. */
const mostLists = 100;

const lists = new WeakMap<Kubecast, Map<string, Growing>>();

/**
 * A live list that grows page by page, up to 2,000 rows; of longer ones, {@link page} has any places. The same for all that show it.
 *
 * ```ts
 * const newest = infiniteListOf(kc, jobs, { sort: ['-metadata.creationTimestamp'], limit: 50 });
 * newest.fetchNextPage();
 * ```
 */
export function infiniteListOf<T extends KubeObject, const F extends readonly string[] = readonly string[]>(kc: Kubecast, resource: Resource<T>, query: InfiniteListQuery<T, F>): InfiniteList<Only<T, F>> {
  const of = lists.get(kc) ?? new Map<string, Growing>();
  lists.set(kc, of);
  const at = (offset: number, limit: number) => page<T, F>(resource, { ...query, offset, limit });
  const key = at(0, query.limit).path;
  const made = of.get(key) ?? new Growing(query.limit, (offset, limit) => kc.follow(at(offset, limit)));
  if (of.size >= mostLists) for (const [old, list] of of) if (!list.shown) of.delete(old);
  of.set(key, made);
  return made as unknown as InfiniteList<Only<T, F>>;
}

type Page = Watch<KubeObject, PagePlace>;
type PageSnapshot = ReturnType<Page['getSnapshot']>;

/** Pages that together reach to a row. */
interface Reach {
  readonly rows: number;
  readonly pages: readonly [Page, ...Page[]];
}

type Snapshots = readonly [PageSnapshot, ...PageSnapshot[]];

class Growing implements InfiniteList<KubeObject> {
  readonly #size: number;
  readonly #at: (offset: number, limit: number) => Page;
  readonly #listeners = new Listeners();
  #subscribers = 0;
  /** When the last of them left. */
  #left = -Infinity;
  #ends: readonly (() => void)[] = [];
  readonly #first: Reach;
  #now: Reach;
  /** What takes its place once it is complete. */
  #next: Reach | undefined;
  #error: Trouble | undefined;
  #snapshot: InfiniteListSnapshot<KubeObject> | undefined;
  #server: { readonly of: PageSnapshot | undefined; readonly shown: InfiniteListSnapshot<KubeObject> } | undefined;

  constructor(size: number, at: (offset: number, limit: number) => Page) {
    this.#size = size;
    this.#at = at;
    this.#now = this.#first = this.#reach(Math.min(mostRows, size));
  }

  get shown(): boolean {
    return this.#subscribers > 0;
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    const leave = this.#listeners.subscribe(listener);
    if (this.#subscribers++ === 0) {
      if (performance.now() - this.#left > keptTime) [this.#now, this.#next, this.#error] = [this.#first, undefined, undefined];
      this.#follow();
      if (this.#next) this.#look(this.#next); // it may have come while nobody looked
    }
    return () => {
      if (!leave() || --this.#subscribers > 0) return;
      this.#left = performance.now();
      this.#follow();
    };
  };

  readonly getSnapshot = (): InfiniteListSnapshot<KubeObject> => {
    const next = this.#show(snapshotsOf(this.#now));
    // Rows that are made of several pages are another list each time.
    const { data } = this.#snapshot ?? next;
    const rows = data.length === next.data.length && data.every((row, n) => row === next.data[n]) ? data : next.data;
    const shown = { ...next, data: rows };
    if (!this.#snapshot || !isSame(shown, this.#snapshot)) this.#snapshot = shown;
    return this.#snapshot;
  };

  readonly getServerSnapshot = (): InfiniteListSnapshot<KubeObject> => {
    const of = this.#first.pages[0].getServerSnapshot();
    const server = this.#server?.of === of ? this.#server : { of, shown: this.#show([of], this.#first) };
    this.#server = server;
    return server.shown;
  };

  readonly retry = (): void => [...this.#now.pages, ...(this.#next?.pages ?? [])].forEach((page) => page.retry());

  readonly fetchNextPage = (): void => {
    if (!this.getSnapshot().hasNextPage || (this.#next && !this.#error)) return;
    const failed = this.#next?.pages ?? [];
    this.#next ??= this.#reach(Math.min(mostRows, this.#now.rows + this.#size));
    // What was refused a moment ago is still known to be.
    const again = new Set([...failed, ...this.#next.pages.filter((page) => isFinal(page.getSnapshot()))]);
    again.forEach((page) => page.retry());
    this.#error = undefined;
    this.#follow();
    if (again.size > 0) this.#listeners.tell();
    else this.#heard(); // it may be there, since it was a moment ago
  };

  #reach(rows: number): Reach {
    const at = (offset: number): Page => this.#at(offset, Math.min(pageSize, rows - offset));
    const pages: [Page, ...Page[]] = [at(0)];
    for (let offset = pageSize - overlap; offset + overlap < rows; offset += pageSize - overlap) pages.push(at(offset));
    return { rows, pages };
  }

  /** Subscribes to what is shown and to what is on its way, if anybody looks. */
  #follow(): void {
    const before = this.#ends;
    const pages = new Set(this.shown ? [...this.#now.pages, ...(this.#next?.pages ?? [])] : []);
    this.#ends = [...pages].map((page) => page.subscribe(this.#heard));
    before.forEach((end) => end());
  }

  readonly #heard = (): void => {
    if (this.#next) this.#look(this.#next);
    this.#listeners.tell();
  };

  /** Whether what is on its way is there, or never will be. */
  #look(next: Reach): void {
    const coming = snapshotsOf(next);
    const refused = coming.find(isFinal);
    // What is as of before does not take the place of what is live.
    const isReady = coming.every(({ total }) => total !== undefined) && (coming.every(isLive) || !snapshotsOf(this.#now).every(isLive));
    this.#error = isReady ? undefined : coming.find(({ status, error }) => error && status !== 'live')?.error;
    if (!refused && !isReady) return;
    if (!refused) this.#now = next;
    this.#next = undefined;
    this.#follow();
  }

  #show(pages: Snapshots, { rows } = this.#now): InfiniteListSnapshot<KubeObject> {
    // How the worst of them is, all of them are.
    const { status, reason, asOf, error, namespaces } = ['failed', 'denied', 'loading', 'stale'].flatMap((how) => pages.find((page) => page.status === how) ?? [])[0] ?? pages[0];
    const freshness = { status, reason, asOf, error, namespaces };
    const { total } = pages[0];
    if (status === 'denied') return { data: none, ...freshness, ...notGrowing };
    const hasNextPage = total !== undefined && total > rows && rows < mostRows;
    return { data: together(pages), ...freshness, total, hasNextPage, isFetchingNextPage: this.#next !== undefined, nextPageError: this.#error };
  }
}

const isLive = ({ status }: PageSnapshot): boolean => status === 'live';

const snapshotsOf = ({ pages: [first, ...others] }: Reach): Snapshots => [first.getSnapshot(), ...others.map((page) => page.getSnapshot())];

/** The rows of all, each once: of each page what stands behind the last row of those before, of which it has the last ones, too. */
function together([first, ...others]: Snapshots): readonly KubeObject[] {
  let rows = first.data;
  for (const { data } of others) {
    const last = rows.at(-1)?.metadata.uid;
    const seen = new Set(rows.map(({ metadata }) => metadata.uid));
    rows = [...rows, ...data.slice(data.findIndex(({ metadata }) => metadata.uid === last) + 1).filter(({ metadata }) => !seen.has(metadata.uid))];
  }
  return rows;
}

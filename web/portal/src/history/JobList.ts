// The jobs of a history as far as somebody has leafed through it: what is new comes in front, and nothing that was seen is lost in between.

import { pastJobs, type Kubecast, type PastJob, type PastQuery } from '@kubecast/sdk';
import { inTurn } from '../clusters/together.ts';
import { jobs } from '../job/resources.ts';

export interface Leafed {
  /** The newest first. */
  readonly items: readonly PastJob[];
  /** There are older ones. */
  readonly more: boolean;
}

/** Those of several clusters, down to where the first of their lists ends: below that there may be others that were not read yet. A search reads no list to an end, and shows what it finds. */
export function joined(lists: readonly Leafed[], isSearch: boolean): Leafed {
  const [one] = lists;
  if (one && lists.length === 1) return one;
  const from = isSearch ? -Infinity : endOf(lists);
  return { items: lists.flatMap(({ items }) => items.filter(({ createdAt }) => createdAt >= from)).sort(newestFirst), more: lists.some(({ more }) => more) };
}

/** Whether older ones of a list are needed for more to be shown of all. */
export const isNext = (list: Leafed, all: readonly Leafed[], isSearch: boolean): boolean => list.more && (isSearch || lastOf(list) >= endOf(all));

/** Where the first list ends that has more. */
const endOf = (lists: readonly Leafed[]): number => Math.max(-Infinity, ...lists.filter(({ more }) => more).map(lastOf));
const lastOf = ({ items }: Leafed): number => items.at(-1)?.createdAt ?? Infinity;
const newestFirst = (a: PastJob, b: PastJob): number => b.createdAt - a.createdAt || (a.uid < b.uid ? 1 : -1);

const page = 100;
/** So many pages without a job, of 5 s of looking each, and somebody is asked whether to go on. */
const mostEmpty = 6;

export class JobList {
  readonly #kc: Kubecast;
  readonly #query: PastQuery;
  #jobs = new Map<string, PastJob>();
  /** Where the older ones begin; undefined: nothing was read yet. */
  #rest: string | undefined;

  constructor(kc: Kubecast, query: PastQuery) {
    this.#kc = kc;
    this.#query = query;
  }

  /** Reads the newest again. */
  readonly newest = async (): Promise<Leafed> => {
    const { items, more, continue: rest } = await inTurn(this.#kc, () => pastJobs(this.#kc, jobs, { ...this.#query, limit: page }));
    // A search that took long ends before its page is full, wherever that is: that none of them is known says nothing.
    const cut = Boolean(this.#query.search) && items.length < page;
    // With so many new ones that none is known, what lies between them and those that are is not known either.
    const gap = more && !cut && !items.some(({ uid }) => this.#jobs.has(uid));
    if (gap) this.#jobs = new Map();
    // What stood between those of the page, or behind the last of all, and is not there any more does not fit the question now.
    const here = new Set(items.map(({ uid }) => uid));
    const last = more ? (items.at(-1)?.createdAt ?? Infinity) : -1;
    for (const { uid, createdAt } of this.#jobs.values()) if (createdAt > last && !here.has(uid)) this.#jobs.delete(uid);
    if (gap || this.#rest === undefined) this.#rest = rest;
    this.#add(items);
    return this.#leafed();
  };

  /** Reads on where the oldest that is known stands, over pages on which a search has found nothing yet. */
  readonly older = async (): Promise<void> => {
    for (let pages = 0; this.#rest && pages < mostEmpty; pages++) {
      const before = this.#rest;
      const { items, continue: rest } = await pastJobs(this.#kc, jobs, { ...this.#query, limit: page, continue: before });
      if (this.#rest !== before) return; // the list has begun anew meanwhile, and this would leave a hole in it
      this.#rest = rest;
      this.#add(items);
      if (items.length > 0) return;
    }
  };

  #add(items: readonly PastJob[]): void {
    for (const job of items) this.#jobs.set(job.uid, job);
  }

  #leafed(): Leafed {
    return { items: [...this.#jobs.values()].sort(newestFirst), more: Boolean(this.#rest) };
  }
}

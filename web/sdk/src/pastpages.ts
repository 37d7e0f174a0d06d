// The jobs of a history as far as they are shown: page by page, each behind the one before.

import { asked, statusOf, type Asked } from './asked.ts';
import { pastJobs, type PastJob, type PastQuery } from './history.ts';
import type { PastPage } from './historypath.ts';
import { notGrowing, type Infinite } from './infinite.ts';
import type { Kubecast } from './kubecast.ts';
import { Listeners } from './listeners.ts';
import { finalOf } from './lost.ts';
import type { KubeObject } from './object.ts';
import type { Resource } from './resource.ts';

/** How many jobs a page has if nobody says, and how many the gateway tells at most. */
const usual = 100;
const most = 1_000;

type Jobs = PastPage<PastJob>;

const none: Jobs = { items: [], more: false, continue: '' };

const pages = new WeakMap<Asked<Jobs>, PastPages>();

/** The same for all that show it; what it has come to is kept as long as its answer. */
export function pagesOf(kc: Kubecast, resource: Resource<KubeObject>, query: PastQuery): PastPages {
  const answer = asked<Jobs>(kc, `past ${JSON.stringify([resource, query])}`, () => made.read());
  const made: PastPages = pages.get(answer) ?? new PastPages(answer, (more) => pastJobs(kc, resource, { ...query, ...more }), query.limit ?? usual);
  pages.set(answer, made);
  return made;
}

export class PastPages {
  readonly answer: Asked<Jobs>;
  readonly #ask: (more: Pick<PastQuery, 'limit' | 'continue'>) => Promise<Jobs>;
  readonly #size: number;
  readonly #listeners = new Listeners();
  readonly subscribe = this.#listeners.subscribe;
  #jobs: Jobs | undefined;
  #pages = 1;
  #wanted = 1;
  /** What is there is to be read anew. */
  #due = true;
  /** Why the next page is not there. */
  #failure: Error | undefined;
  #infinite = notGrowing;

  constructor(answer: Asked<Jobs>, ask: (more: Pick<PastQuery, 'limit' | 'continue'>) => Promise<Jobs>, size: number) {
    this.answer = answer;
    this.#ask = ask;
    this.#size = size;
  }

  /** All that is there. */
  get jobs(): readonly PastJob[] | undefined {
    return this.#jobs?.items;
  }

  /** The same one until something of it has changed. */
  get infinite(): Infinite {
    return this.#infinite;
  }

  /** Whether what the answer has failed with was the next page, and not what is there. */
  isOfNext(error: Error): boolean {
    return error === this.#failure;
  }

  /** All that is there may have changed, by whenever it is asked for next. */
  renew(): void {
    this.#due = true;
  }

  /** What is there may not be seen any more: it is not shown again, whatever comes, before it is read anew. */
  forget(): void {
    this.#jobs = undefined;
    this.#due = true;
    this.#wanted = this.#pages;
    this.#infinite = notGrowing;
  }

  readonly fetchNextPage = (): void => {
    if (!this.#jobs?.more) return;
    const { isFetchingNextPage, nextPageError } = this.#infinite;
    if (isFetchingNextPage && !nextPageError) return;
    this.#wanted = this.#pages + 1;
    this.#show({ isFetchingNextPage: true, nextPageError: undefined });
    this.answer.retry();
    this.#listeners.tell();
  };

  async read(): Promise<Jobs> {
    if (this.#due) await this.#anew(this.#pages);
    const asked = this.#wanted > this.#pages;
    if (asked && this.#jobs?.more) await this.#next(this.#jobs).catch((error: unknown) => this.#failed(error));
    this.#wanted = this.#pages;
    this.#show({ isFetchingNextPage: false, nextPageError: asked ? undefined : this.#infinite.nextPageError });
    return this.#jobs ?? none;
  }

  async #anew(count: number): Promise<void> {
    this.#due = false; // it may be again before the answer is there
    try {
      this.#jobs = await this.#first(count);
      this.#pages = count;
    } catch (error) {
      this.#due = true;
      if (finalOf(`:${String(statusOf(error))}`) === 'denied') this.forget();
      throw error;
    }
  }

  async #next(jobs: Jobs): Promise<void> {
    try {
      this.#jobs = joined(jobs, await this.#ask({ continue: jobs.continue }));
      this.#pages = this.#wanted;
    } catch (error) {
      // A token that counts no more is none: what it would lead to is read from the beginning.
      if (statusOf(error) !== 410) throw error;
      await this.#anew(this.#wanted);
    }
  }

  #failed(thrown: unknown): never {
    const error = (this.#failure = thrown instanceof Error ? thrown : new Error(String(thrown)));
    const status = `http:${String(statusOf(error))}`;
    const isFinal = finalOf(status) !== undefined;
    if (isFinal) this.#wanted = this.#pages; // nobody asks for it again but whoever shows it
    this.#show({ isFetchingNextPage: !isFinal, nextPageError: { reason: statusOf(error) === undefined ? 'network' : status, message: error.message } });
    throw error;
  }

  /** So many pages in as few answers as may be. A search that found less than that is asked no more often than it was before. */
  async #first(count: number): Promise<Jobs> {
    const size = count * this.#size;
    let jobs = await this.#ask(count > 1 ? { limit: Math.min(most, size) } : {});
    for (let n = 1; n < count && jobs.more && jobs.items.length < size; n++) jobs = joined(jobs, await this.#ask({ limit: Math.min(most, size - jobs.items.length), continue: jobs.continue }));
    return jobs;
  }

  #show(next: Omit<Infinite, 'hasNextPage'>): void {
    this.#infinite = { ...next, hasNextPage: this.#jobs?.more ?? false };
  }
}

/** One list of both; a job that has come into the second as well, since it changed in between, is shown once. */
function joined(before: Jobs, { items, ...rest }: Jobs): Jobs {
  const all = new Map(before.items.map((job) => [job.uid, job]));
  for (const job of items) all.set(job.uid, job);
  return { ...rest, items: [...all.values()] };
}

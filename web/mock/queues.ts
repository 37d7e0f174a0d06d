// The queues of the mock, and what of them somebody is told; see "Queues" in the wire contract.

import { BadQuery, durationOf, whole } from './query.ts';
import type { MockUser } from './rights.ts';
import type { ToldWatch } from './stream.ts';
import { MockQueue, type ToldQueue } from './told.ts';

export class MockQueues {
  /** By `namespace/name`, or the name of one without a namespace; the list of them under the empty one. */
  readonly #all = new Map<string, MockQueue>();

  /** A queue is there, or has changed. */
  put(queue: ToldQueue): void {
    this.#at([queue.namespace, queue.name].filter(Boolean).join('/')).put(queue);
    const items = [...this.#all].filter(([key]) => key !== '').map(([, { last }]) => ({ ...last, jobs: undefined }));
    this.#at('').put({ items });
  }

  /** What is answered to somebody who asks once. */
  answer(path: string, query: URLSearchParams, user: MockUser): object {
    return this.follow(path, query, user).shape(this.#at(keyOf(path)).last);
  }

  /** How a queue, or the list of them, is told to somebody. Throws {@link BadQuery}, also where there is no such queue. */
  follow(path: string, query: URLSearchParams, user: MockUser): ToldWatch & { readonly shape: (data: object) => object } {
    const conflate = durationOf('conflate', query.get('conflate') ?? '') ?? 250;
    const limit = whole('limit', query.get('limit') ?? '100', 1, 1_000);
    const unknown = [...query.keys()].find((key) => !['limit', 'kind', 'conflate', 'heartbeat', 'lastEventId', 'last_event_id'].includes(key));
    if (unknown) throw new BadQuery(`${unknown}: unknown parameter of queues`);
    const sees = (namespace: unknown): boolean => user.namespaces === undefined || user.namespaces.includes(String(namespace));
    const log = path === '/queues' ? this.#at('') : this.#all.get(keyOf(path));
    const last = log?.last as Partial<ToldQueue> | undefined;
    const kind = query.get('kind');
    if (!log || (path !== '/queues' && (!sees(last?.namespace) || (kind !== null && last?.kind !== kind)))) throw new BadQuery('there is no such queue', 404);
    const job = (one: object): object => (sees((one as { namespace?: string }).namespace ?? last?.namespace) ? one : { position: (one as { position?: number }).position ?? null, hidden: true });
    const shape = (data: object): object => {
      const { items = [], jobs = [] } = data as { items?: readonly ToldQueue[]; jobs?: readonly object[] };
      return path === '/queues' ? { items: items.filter(({ namespace }) => sees(namespace)) } : { ...data, jobs: jobs.slice(0, limit).map(job) };
    };
    const allows = ({ namespaces }: MockUser): boolean => path === '/queues' || (namespaces?.includes(String(last?.namespace)) ?? true);
    return { log, limit: 1, mark: '', conflate, shape, allows };
  }

  #at(key: string): MockQueue {
    const queue = this.#all.get(key) ?? new MockQueue();
    this.#all.set(key, queue);
    return queue;
  }
}

const keyOf = (path: string): string => decodeURIComponent(path.replace(/^\/queues\/?/, ''));

// For Svelte: a watch is a store, and its objects are there while somebody has subscribed, as `$running` does.

import { getContext, setContext } from 'svelte';
import { readable, type Readable } from 'svelte/store';
import { accessOf, meOf, type Access, type AccessQuery, type Me } from './access.ts';
import type { Asked } from './asked.ts';
import { counts, type Count, type CountQuery } from './counts.ts';
import type { PastQuery } from './history.ts';
import type { Kubecast, Watch } from './kubecast.ts';
import { logs, type LogEntry, type LogQuery } from './logs.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import { page, type PagePlace, type PageQuery } from './page.ts';
import { pastOf, type Past } from './past.ts';
import type { Only, Paths } from './paths.ts';
import { queue as queueSource, queuesOf, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import type { QueryOf, Resource } from './resource.ts';
import { holding, one, shown, type Followable, type One, type Shown } from './shown.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const key = Symbol('kubecast');

/** Gives the components below this one a gateway. */
export const setKubecast = (client: Kubecast): Kubecast => setContext(key, client);

/** The page's, as it was provided above. */
export function getKubecast(): Kubecast {
  const client = getContext<Kubecast | undefined>(key);
  if (!client) throw new Error('no component above this one has called setKubecast');
  return client;
}

/** On a server nothing is followed. */
const isServer = !('document' in globalThis);

function follow<F extends Pick<Followable, 'subscribe'>, S>(from: F, look: (from: F) => S): Readable<S> {
  return readable(look(from), (set) => {
    if (isServer) return;
    const leave = from.subscribe(() => set(look(from)));
    set(look(from));
    return leave;
  });
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```svelte
 * const running = $derived(watch(jobs, { namespace: team }));   // $running.data, $running.status
 * ```
 *
 * Outside of a component's beginning, where there is no context, the gateway has to be given.
 */
export function watch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
  kc: Kubecast = getKubecast(),
): Readable<Shown<Watch<Only<T, F>>>> {
  return follow(kc.watch<T, F>(resource, query), shown);
}

/** One object: `object(jobs, { namespace, name })`. Its `data` is `undefined` while it is not known, and `live` without one if there is none. */
export function object<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: QueryOf<T, F> & { readonly name: string },
  kc: Kubecast = getKubecast(),
): Readable<One<Shown<Watch<Only<T, F>>>>> {
  return follow(kc.watch<T, F>(resource, query), (from) => one(shown(from)));
}

/** For what is not made of objects, or only of some: `followed(transitions(jobs, { namespace }))`. */
export function followed<T, More>(source: Source<T, More>, kc: Kubecast = getKubecast()): Readable<Shown<Watch<T, More>>> {
  return follow(kc.follow(source), shown);
}

/** How many objects there are of each value: `counted(pods, ['status.phase'])`, or by two paths. */
export function counted<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Paths<T, B>,
  query?: CountQuery,
  kc: Kubecast = getKubecast(),
): Readable<Shown<Watch<Count>>> {
  return follow(kc.follow(counts<T, B>(resource, by, query)), shown);
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `catching-up`.
 *
 * ```svelte
 * const newest = livePage(jobs);
 * const rows = $derived(newest({ sort: ['-metadata.creationTimestamp'], limit: 50, offset }));   // $rows.data, $rows.total
 * ```
 */
export function livePage<T extends KubeObject>(resource: Resource<T>, kc: Kubecast = getKubecast()) {
  const look = holding();
  return <const F extends readonly string[] = readonly string[]>(query: PageQuery<T, F>): Readable<Shown<Watch<Only<T, F>, PagePlace>>> =>
    follow(kc.follow(page<T, F>(resource, query)), look);
}

/** What the containers of a pod, or of an object's pods, write. */
export function logged(resource: Resource<KubeObject>, query: LogQuery, kc: Kubecast = getKubecast()): Readable<Shown<Watch<LogEntry>>> {
  return follow(kc.follow(logs(resource, query)), shown);
}

/** The jobs of a history, past ones too, and the states through which they went: `history(jobs, { owner: 'me' })`. */
export function history(resource: Resource<KubeObject>, query: PastQuery, kc: Kubecast = getKubecast()): Readable<Shown<Past>> {
  return follow(pastOf(kc, resource, query), shown);
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function me(kinds?: readonly string[], kc: Kubecast = getKubecast()): Readable<Shown<Asked<Me>>> {
  return follow(meOf(kc, kinds), shown);
}

/** Whether the caller may watch, or get, or list that: `access(pods, { namespace, subresource: 'log', verb: 'get' })`. */
export function access(resource: Resource<KubeObject>, query?: AccessQuery, kc: Kubecast = getKubecast()): Readable<Shown<Asked<Access>>> {
  return follow(accessOf(kc, resource, query), shown);
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function notifications(kc: Kubecast = getKubecast()): Readable<Shown<Inbox>> {
  return follow(inboxOf(kc), shown);
}

/** One queue, and who waits in it: `queue('team-a', 'gpu')`; without a namespace a queue of the whole cluster. Its `data` is `undefined` while it is not known. */
export function queue(namespace: string, name: string, query?: QueueQuery, kc: Kubecast = getKubecast()): Readable<One<Shown<Watch<QueueWithJobs>>>> {
  return follow(kc.follow(queueSource(namespace, name, query)), (from) => one(shown(from)));
}

/** The queues that the caller may see; none where the cluster has none. */
export function queues(query?: Pick<QueueQuery, 'cluster'>, kc: Kubecast = getKubecast()): Readable<Shown<Queues>> {
  return follow(queuesOf(kc, query), shown);
}

/** The state of the one connection; undefined while nothing is watched. */
export function connection({ connection: from }: Kubecast = getKubecast()): Readable<ConnectionState | undefined> {
  return follow(from, () => from.getSnapshot());
}

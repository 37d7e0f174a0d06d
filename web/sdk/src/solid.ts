// For Solid: a watch is an accessor, and its objects are there while its owner is.

import { createContext, createEffect, createMemo, createSignal, on, onCleanup, useContext, type Accessor } from 'solid-js';
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
import { queue, queuesOf, type QueueQuery, type Queues, type QueueWithJobs } from './queues.ts';
import type { QueryOf, Resource } from './resource.ts';
import { holding, one, shown, type Followable, type One, type Shown } from './shown.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

/** Gives the components below it a gateway: `<KubecastContext.Provider value={createKubecast()}>`. */
export const KubecastContext = createContext<Kubecast>();

/** The page's, as it was provided above. */
export function useKubecast(): Kubecast {
  const client = useContext(KubecastContext);
  if (!client) throw new Error('there is no KubecastContext.Provider above this component');
  return client;
}

/** Shows what `look` finds, now and whenever it has changed. On a server effects do not run, so nothing is followed there. */
function follow<F extends Pick<Followable, 'subscribe'>, S>(of: Accessor<F>, look: (from: F) => S): Accessor<S> {
  const [live, set] = createSignal(look(of()));
  createEffect(
    on(of, (from) => {
      const show = (): void => void set(() => look(from));
      onCleanup(from.subscribe(show));
      show();
    }),
  );
  return live;
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```tsx
 * const running = createWatch(jobs, () => ({ namespace: props.team }));   // running().data, running().status
 * ```
 */
export function createWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: Accessor<QueryOf<T, F> | undefined>,
): Accessor<Shown<Watch<Only<T, F>>>> {
  const kc = useKubecast();
  return follow(createMemo(() => kc.watch<T, F>(resource, query?.())), shown);
}

/** One object: `createObject(jobs, () => ({ namespace, name }))`. Its `data` is `undefined` while it is not known, and `live` without one if there is none. */
export function createObject<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<QueryOf<T, F> & { readonly name: string }>,
): Accessor<One<Shown<Watch<Only<T, F>>>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => kc.watch<T, F>(resource, query())),
    (from) => one(shown(from)),
  );
}

/** For what is not made of objects, or only of some: `createFollow(() => transitions(jobs, { namespace }))`. */
export function createFollow<T, More>(source: Accessor<Source<T, More>>): Accessor<Shown<Watch<T, More>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => kc.follow(source())),
    shown,
  );
}

/** How many objects there are of each value: `createCount(pods, ['status.phase'])`, or by two paths. */
export function createCount<T extends KubeObject, const B extends readonly string[]>(
  resource: Resource<T>,
  by: B & Paths<T, B>,
  query?: Accessor<CountQuery | undefined>,
): Accessor<Shown<Watch<Count>>> {
  return createFollow(() => counts<T, B>(resource, by, query?.()));
}

/**
 * What stands on some places of a sorted, searched list, in order. When another page is asked for, the one before stays until that
 * is complete, as `catching-up`.
 */
export function createLivePage<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query: Accessor<PageQuery<T, F>>,
): Accessor<Shown<Watch<Only<T, F>, PagePlace>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => kc.follow(page<T, F>(resource, query()))),
    holding(),
  );
}

/** What the containers of a pod, or of an object's pods, write. */
export function createLogs(resource: Resource<KubeObject>, query: Accessor<LogQuery>): Accessor<Shown<Watch<LogEntry>>> {
  return createFollow(() => logs(resource, query()));
}

/** The jobs of a history, past ones too, and the states through which they went: `createHistory(jobs, () => ({ owner: 'me' }))`. */
export function createHistory(resource: Resource<KubeObject>, query: Accessor<PastQuery>): Accessor<Shown<Past>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => pastOf(kc, resource, query())),
    shown,
  );
}

/** Who the caller is, and what of some kinds (`pods`, `jobs.batch`) they may watch where. */
export function createMe(kinds?: Accessor<readonly string[] | undefined>): Accessor<Shown<Asked<Me>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => meOf(kc, kinds?.())),
    shown,
  );
}

/** Whether the caller may watch, or get, or list that: `createAccess(pods, () => ({ namespace, subresource: 'log', verb: 'get' }))`. */
export function createAccess(resource: Resource<KubeObject>, query?: Accessor<AccessQuery | undefined>): Accessor<Shown<Asked<Access>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => accessOf(kc, resource, query?.())),
    shown,
  );
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function createNotifications(): Accessor<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  return follow(() => inbox, shown);
}

/** One queue, and who waits in it: `createQueue(() => 'team-a', () => props.queue)`; without a namespace a queue of the whole cluster. Its `data` is `undefined` while it is not known. */
export function createQueue(namespace: Accessor<string>, name: Accessor<string>, query?: Accessor<QueueQuery | undefined>): Accessor<One<Shown<Watch<QueueWithJobs>>>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => kc.follow(queue(namespace(), name(), query?.()))),
    (from) => one(shown(from)),
  );
}

/** The queues that the caller may see; none where the cluster has none. */
export function createQueues(query?: Accessor<Pick<QueueQuery, 'cluster'> | undefined>): Accessor<Shown<Queues>> {
  const kc = useKubecast();
  return follow(
    createMemo(() => queuesOf(kc, query?.())),
    shown,
  );
}

/** The state of the one connection; undefined while nothing is watched. */
export function createConnection(): Accessor<ConnectionState | undefined> {
  const { connection } = useKubecast();
  return follow(
    () => connection,
    (from) => from.getSnapshot(),
  );
}

// For Solid: a watch is an accessor, and its objects are there while its owner is.

import { createContext, createEffect, createMemo, createSignal, on, onCleanup, useContext, type Accessor } from 'solid-js';
import type { Kubecast, Watch } from './kubecast.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import type { QueryOf, Resource } from './resource.ts';
import { shown, type Followable, type Shown } from './shown.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

/** Gives the components below it a gateway: `<KubecastContext.Provider value={createKubecast()}>`. */
export const KubecastContext = createContext<Kubecast>();

export function useKubecast(): Kubecast {
  const client = useContext(KubecastContext);
  if (!client) throw new Error('there is no KubecastContext.Provider above this component');
  return client;
}

type Subscribe = (listener: () => void) => () => void;

/** Shows what `look` finds, now and whenever it has changed. On a server effects do not run, so nothing is followed there. */
function follow<F extends { readonly subscribe: Subscribe }, S>(of: Accessor<F>, look: (from: F) => S): Accessor<S> {
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

const follows = <F extends Followable>(of: Accessor<F>): Accessor<Shown<F>> => follow(of, shown);

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
  return follows(createMemo(() => kc.watch(resource, query?.())));
}

/** The same for what is not made of objects: `createFollow(() => logs(jobs, { namespace, name }))`. */
export function createFollow<T>(source: Accessor<Source<T>>): Accessor<Shown<Watch<T>>> {
  const kc = useKubecast();
  return follows(createMemo(() => kc.follow(source())));
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function createNotifications(): Accessor<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  return follows(() => inbox);
}

/** The state of the one connection; undefined while nothing is watched. */
export function createConnection(): Accessor<ConnectionState | undefined> {
  const { connection } = useKubecast();
  return follow(
    () => connection,
    (from) => from.getSnapshot(),
  );
}

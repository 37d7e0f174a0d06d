// For React: a watch is a hook, and its objects are there while the component is.

import { createContext, createElement, useCallback, useContext, useSyncExternalStore, type FunctionComponent, type ReactNode } from 'react';
import type { Kubecast, Watch, WatchSnapshot } from './kubecast.ts';
import { inboxOf, type Inbox, type InboxSnapshot } from './notifications.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import type { QueryOf, Resource } from './resource.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const Context = createContext<Kubecast | undefined>(undefined);

/** Gives the components below it a gateway. */
export const KubecastProvider: FunctionComponent<{ readonly client: Kubecast; readonly children?: ReactNode }> = ({ client, children }) =>
  createElement(Context.Provider, { value: client }, children);

export function useKubecast(): Kubecast {
  const client = useContext(Context);
  if (!client) throw new Error('there is no KubecastProvider above this component');
  return client;
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask. On a
 * server nothing is watched.
 *
 * ```tsx
 * const { data, status } = useWatch(jobs, { namespace: 'team-a', where: 'status.active!=' });
 * ```
 */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: QueryOf<T, F>,
): WatchSnapshot<Only<T, F>> & Pick<Watch<T>, 'retry'> {
  const { subscribe, getSnapshot, getServerSnapshot, retry } = useKubecast().watch(resource, query);
  return { ...useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot), retry };
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): ConnectionState | undefined {
  const { connection } = useKubecast();
  return useSyncExternalStore(connection.subscribe, connection.getSnapshot, useCallback(() => undefined, []));
}

/** The same for what is not made of objects: `useFollow(logs(jobs, { namespace, name }))`, `useFollow(transitions(jobs, { namespace }))`. */
export function useFollow<T>(source: Source<T>): WatchSnapshot<T> & Pick<Watch<T>, 'retry'> {
  const { subscribe, getSnapshot, getServerSnapshot, retry } = useKubecast().follow(source);
  return { ...useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot), retry };
}

/**
 * What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices.
 *
 * ```tsx
 * const { items, unread, markRead } = useNotifications();
 * ```
 */
export function useNotifications(): InboxSnapshot & Pick<Inbox, 'markRead' | 'settings' | 'setSettings' | 'retry'> {
  const { subscribe, getSnapshot, getServerSnapshot, markRead, settings, setSettings, retry } = inboxOf(useKubecast());
  return { ...useSyncExternalStore(subscribe, getSnapshot, getServerSnapshot), markRead, settings, setSettings, retry };
}

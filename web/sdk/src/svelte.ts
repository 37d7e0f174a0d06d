// For Svelte: a watch is a store, and its objects are there while somebody has subscribed, as `$running` does.

import { getContext, setContext } from 'svelte';
import { readable, type Readable } from 'svelte/store';
import type { Kubecast, Watch } from './kubecast.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import type { QueryOf, Resource } from './resource.ts';
import { shown, type Followable, type Shown } from './shown.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

const key = Symbol('kubecast');

/** Gives the components below this one a gateway. */
export const setKubecast = (client: Kubecast): Kubecast => setContext(key, client);

export function getKubecast(): Kubecast {
  const client = getContext<Kubecast | undefined>(key);
  if (!client) throw new Error('no component above this one has called setKubecast');
  return client;
}

/** On a server nothing is followed. */
const isServer = !('document' in globalThis);

function follow<F extends Followable>(from: F): Readable<Shown<F>> {
  return readable(shown(from), (set) => {
    if (isServer) return;
    const leave = from.subscribe(() => set(shown(from)));
    set(shown(from));
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
  return follow(kc.watch(resource, query));
}

/** The same for what is not made of objects: `followed(logs(jobs, { namespace, name }))`. */
export function followed<T>(source: Source<T>, kc: Kubecast = getKubecast()): Readable<Shown<Watch<T>>> {
  return follow(kc.follow(source));
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function notifications(kc: Kubecast = getKubecast()): Readable<Shown<Inbox>> {
  return follow(inboxOf(kc));
}

/** The state of the one connection; undefined while nothing is watched. */
export function connection({ connection: from }: Kubecast = getKubecast()): Readable<ConnectionState | undefined> {
  return readable<ConnectionState | undefined>(from.getSnapshot(), (set) => {
    const leave = from.subscribe(() => set(from.getSnapshot()));
    set(from.getSnapshot());
    return leave;
  });
}

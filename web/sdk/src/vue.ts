// For Vue: a watch is a composable, and its objects are there while the scope is.

import { inject, shallowRef, toValue, watchPostEffect, type InjectionKey, type MaybeRefOrGetter, type Plugin, type ShallowRef } from 'vue';
import type { Kubecast, Watch } from './kubecast.ts';
import { inboxOf, type Inbox } from './notifications.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import type { QueryOf, Resource } from './resource.ts';
import { shown, type Followable, type Shown } from './shown.ts';
import type { ConnectionState } from './state.ts';
import type { Source } from './store.ts';

type Live<T> = Readonly<ShallowRef<T>>;

const key: InjectionKey<Kubecast> = Symbol('kubecast');

/** Gives all components a gateway: `createApp(App).use(kubecast(createKubecast()))`. */
export const kubecast = (client: Kubecast): Plugin => ({ install: (app) => void app.provide(key, client) });

export function useKubecast(): Kubecast {
  const client = inject(key, undefined);
  if (!client) throw new Error('the app does not use kubecast()');
  return client;
}

/** Follows something, and what is followed changes with what `of` depends on. On a server nothing is: no effect after the rendering runs there. */
function follow<F extends Followable>(of: () => F): Live<Shown<F>> {
  const live = shallowRef(shown(of())) as ShallowRef<Shown<F>>;
  watchPostEffect((onCleanup) => {
    const from = of();
    const show = (): void => void (live.value = shown(from));
    onCleanup(from.subscribe(show));
    show();
  });
  return live;
}

/**
 * The objects of a watch, and how far they can be trusted. All components of a page share one stream, however often they ask.
 *
 * ```vue
 * const running = useWatch(jobs, () => ({ namespace: props.team }));   // running.data, running.status in the template
 * ```
 */
export function useWatch<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  resource: Resource<T>,
  query?: MaybeRefOrGetter<QueryOf<T, F> | undefined>,
): Live<Shown<Watch<Only<T, F>>>> {
  const kc = useKubecast();
  return follow(() => kc.watch(resource, toValue(query)));
}

/** The same for what is not made of objects: `useFollow(() => logs(jobs, { namespace, name }))`. */
export function useFollow<T>(source: MaybeRefOrGetter<Source<T>>): Live<Shown<Watch<T>>> {
  const kc = useKubecast();
  return follow(() => kc.follow(toValue(source)));
}

/** What the caller was told of their jobs, the newest first, and how much of it is unread; shared by all tabs and devices. */
export function useNotifications(): Live<Shown<Inbox>> {
  const inbox = inboxOf(useKubecast());
  return follow(() => inbox);
}

/** The state of the one connection; undefined while nothing is watched. */
export function useConnection(): Live<ConnectionState | undefined> {
  const { connection } = useKubecast();
  const live = shallowRef(connection.getSnapshot());
  watchPostEffect((onCleanup) => {
    const show = (): void => void (live.value = connection.getSnapshot());
    onCleanup(connection.subscribe(show));
    show();
  });
  return live;
}

// For TanStack DB: a watch as a collection that is synchronised, to be joined and filtered by live queries.

import type { Kubecast } from './kubecast.ts';
import type { KubeObject } from './object.ts';
import type { Only } from './paths.ts';
import type { QueryOf, Resource } from './resource.ts';
import { isFinal } from './state.ts';

/** What TanStack DB hands to whoever synchronises a collection, as far as it is used here. */
export interface SyncParams<T> {
  readonly begin: () => void;
  readonly write: (change: { readonly type: 'insert' | 'update' | 'delete'; readonly value: T }) => void;
  readonly commit: () => unknown;
  readonly markReady: () => void;
  readonly markError: (error?: unknown) => void;
}

/** The options of a collection, for `createCollection` of TanStack DB. */
export interface KubecastCollection<T extends KubeObject> {
  readonly getKey: (object: T) => string;
  readonly sync: { readonly sync: (params: SyncParams<T>) => () => void; readonly rowUpdateMode: 'full' };
}

/**
 * Watched while the collection is in use. It has no mutations, since Kubecast writes nothing.
 *
 * ```ts
 * const running = createCollection(kubecastCollection(kc, jobs, { namespace: 'team-a' }));
 * ```
 *
 * What is denied at first fails the collection's `preload()` with the reason; what is denied later empties it.
 */
export function kubecastCollection<T extends KubeObject, const F extends readonly string[] = readonly string[]>(
  kc: Kubecast,
  resource: Resource<T>,
  query?: QueryOf<T, F>,
): KubecastCollection<Only<T, F>> {
  type Row = Only<T, F>;
  const getKey = ({ metadata }: Row): string => metadata.uid;
  const sync = ({ begin, write, commit, markReady, markError }: SyncParams<Row>): (() => void) => {
    const watch = kc.watch<T, F>(resource, query);
    let known = new Map<string, Row>();
    let ready = false;
    let shown: readonly Row[] | undefined;
    const show = (): void => {
      const { data, status, error } = watch.getSnapshot();
      if (status === 'loading') return;
      if (!ready && isFinal({ status })) {
        markError(new Error(error?.message ?? status, { cause: error }));
        return;
      }
      if (data !== shown) {
        shown = data;
        const rows = new Map(data.map((row) => [getKey(row), row]));
        begin();
        for (const [key, value] of known) if (!rows.has(key)) write({ type: 'delete', value });
        for (const [key, value] of rows) {
          // What has not changed is the same object.
          if (known.get(key) !== value) write({ type: known.has(key) ? 'update' : 'insert', value });
        }
        commit();
        known = rows;
      }
      if (ready) return;
      ready = true;
      markReady();
    };
    const leave = watch.subscribe(show);
    show();
    return leave;
  };
  return { getKey, sync: { sync, rowUpdateMode: 'full' } };
}

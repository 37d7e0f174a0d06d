// A page that is one live table: filters above it, counts beside them.

import type { Collection, KubeObject } from '@kubecast/sdk';
import { useDeferredValue, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { countByState, matcher } from '../filters/filter.ts';
import { StateFilter } from '../filters/StateFilter.tsx';
import { setView, type View } from '../view/view.ts';
import { DataTable, type Column } from './DataTable.tsx';
import { Rows, type Row } from './rows.ts';
import { t } from './texts.ts';

export interface TablePageProps<T extends KubeObject, R extends Row> {
  readonly name: 'jobs' | 'pods';
  readonly collection: Collection<T>;
  readonly view: View;
  readonly read: (object: T) => R;
  readonly columns: readonly Column<R>[];
  readonly states: readonly string[];
  /** What a search looks into. */
  readonly texts: (row: R) => readonly string[];
  readonly narrowLine: (row: R) => ReactNode;
  readonly href?: (row: R) => string | undefined;
  /** What stands above the table, beside the filter by state. */
  readonly filters: ReactNode;
  /** Said when there is nothing, although nothing is filtered. */
  readonly empty: string;
}

export function TablePage<T extends KubeObject, R extends Row>(props: TablePageProps<T, R>): ReactNode {
  const { name, collection, view, read, columns, states, texts, narrowLine, href, filters, empty } = props;
  const source = useMemo(() => new Rows(collection, read), [collection, read]);
  const { rows, phase } = useSyncExternalStore(source.subscribe, source.getSnapshot);

  // Typing stays fluent: the table may follow a few frames later.
  const search = useDeferredValue(view.search);
  const found = useMemo(() => rows.filter(matcher(search, texts)), [rows, search, texts]);
  const counts = useMemo(() => countByState(found), [found]);
  const shown = useMemo(() => (view.state ? found.filter(({ state }) => state === view.state) : found), [found, view.state]);

  const filtered = view.state !== '' || view.search !== '';
  return (
    <>
      <div className="toolbar">
        {filters}
        <StateFilter states={states} counts={counts} total={found.length} selected={view.state} loading={phase === 'loading'} />
      </div>
      <DataTable name={name} columns={columns} rows={shown} sort={view.sort} onSort={(sort) => setView({ sort })} narrowLine={narrowLine} href={href} asked={`${view.namespace} ${view.state} ${view.search}`}>
        {phase === 'loading' ? (
          <span className="loading">{t.loading[name]}</span>
        ) : filtered && rows.length > 0 ? (
          <>
            <p>{t.noneMatches[name](rows.length)}</p>
            <button type="button" className="button" onClick={() => setView({ search: '', state: '' })}>
              {t.clear}
            </button>
          </>
        ) : (
          <p>{empty}</p>
        )}
      </DataTable>
    </>
  );
}

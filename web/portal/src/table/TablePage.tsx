// A page that is one live table: filters above it, counts beside them.

import type { Collection, KubeObject } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useDeferredValue, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { Export } from '../export/Export.tsx';
import type { Cell } from '../export/csv.ts';
import { ofRows } from '../export/table.ts';
import { countByState, matcher } from '../filters/filter.ts';
import { StateFilter } from '../filters/StateFilter.tsx';
import { jobs, pods } from '../job/resources.ts';
import { setView, type View } from '../view/view.ts';
import { DataTable, type Column } from './DataTable.tsx';
import { Rows, type Row } from './rows.ts';
import { sortRows } from './sort.ts';
import { t } from './texts.ts';
import { untold } from './untold.ts';

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
  /** The rows as a file. */
  readonly exported: { readonly header: readonly string[]; readonly line: (row: R) => readonly Cell[] };
  /** What stands above the table, beside the filter by state. */
  readonly filters: ReactNode;
  /** Said when there is nothing, although nothing is filtered. */
  readonly empty: ReactNode;
}

export function TablePage<T extends KubeObject, R extends Row>(props: TablePageProps<T, R>): ReactNode {
  const { name, collection, view, read, columns, states, texts, narrowLine, href, exported, filters, empty } = props;
  const kc = useKubecast();
  const source = useMemo(() => new Rows(collection, read), [collection, read]);
  const { rows, phase } = useSyncExternalStore(source.subscribe, source.getSnapshot);

  // Typing stays fluent: the table may follow a few frames later.
  const search = useDeferredValue(view.search);
  const found = useMemo(() => rows.filter(matcher(search, texts)), [rows, search, texts]);
  const counts = useMemo(() => countByState(found), [found]);
  const shown = useMemo(() => (view.state ? found.filter(({ state }) => state === view.state) : found), [found, view.state]);

  const taken = useMemo(() => {
    const by = columns.find(({ id }) => id === view.sort.column) ?? columns[0];
    return ofRows(kc, name === 'jobs' ? jobs : pods, view.namespace, () => (by ? sortRows(shown, by.value, view.sort.descending) as readonly R[] : shown), exported);
  }, [kc, name, view.namespace, view.sort, shown, columns, exported]);
  const without = useMemo(() => untold(columns, rows, view.namespace), [columns, rows, view.namespace]);
  const filtered = view.state !== '' || view.search !== '';
  return (
    <>
      <div className="toolbar">
        {filters}
        <StateFilter states={states} counts={counts} total={found.length} selected={view.state} loading={phase === 'loading'} />
        {shown.length > 0 && <Export of={taken} />}
      </div>
      <DataTable name={name} columns={columns} without={without} rows={shown} sort={view.sort} onSort={(sort) => setView({ sort })} narrowLine={narrowLine} href={href} asked={`${view.namespace} ${view.state} ${view.search}`}>
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
          empty
        )}
      </DataTable>
    </>
  );
}

// A page that is one live table: filters above it, counts beside them.

import type { KubeObject, WatchSnapshot } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useDeferredValue, useMemo, useSyncExternalStore, type ReactNode } from 'react';
import { t as frame } from '../app/texts.ts';
import { hiddenColumns } from '../columns/columns.ts';
import { Export } from '../export/Export.tsx';
import { ofRows, type Lines } from '../export/table.ts';
import { countByState, matcher } from '../filters/filter.ts';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { Search } from '../filters/Search.tsx';
import { StateFilter } from '../filters/StateFilter.tsx';
import { useVisible } from '../filters/visible.ts';
import { jobs, pods } from '../job/resources.ts';
import { useRested } from '../scheduling/useRested.ts';
import { setView, type TableName, type View } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { DataTable, type Column } from './DataTable.tsx';
import { Nothing } from './Nothing.tsx';
import { Refused } from './Refused.tsx';
import { Rows, type Row } from './rows.ts';
import { sortRows } from './sort.ts';
import { t } from './texts.ts';
import { untold } from './untold.ts';
import { watchOf } from './watched.ts';

export interface TablePageProps<T extends KubeObject, R extends Row> {
  readonly name: TableName;
  readonly view: View;
  readonly read: (object: T) => R;
  readonly columns: readonly Column<R>[];
  /** In their order; undefined: those that there are, what needs somebody first. */
  readonly states?: readonly string[];
  /** What a search looks into. */
  readonly texts: (row: R) => readonly string[];
  readonly narrowLine: (row: R) => ReactNode;
  readonly href?: (row: R) => string | undefined;
  /** The rows as a file. */
  readonly exported: Lines<R>;
}

export function TablePage<T extends KubeObject, R extends Row>(props: TablePageProps<T, R>): ReactNode {
  const { name, view, read, columns, states, texts, narrowLine, href, exported } = props;
  const kc = useKubecast();
  const namespace = useRested(view.namespace);
  const watch = watchOf(kc, name, namespace);
  const found = useSyncExternalStore(watch.subscribe, watch.getSnapshot) as WatchSnapshot<T>;
  const source = useMemo(() => new Rows(read), [read]);
  const rows = useMemo(() => source.read(found, namespace), [source, found, namespace]);
  const loading = found.status === 'loading';
  const visible = useVisible(namespace, found);

  // Typing stays fluent: the table may follow a few frames later.
  const search = useDeferredValue(view.search);
  const matching = useMemo(() => rows.filter(matcher(search, texts)), [rows, search, texts]);
  const counts = useMemo(() => countByState(matching), [matching]);
  const shown = useMemo(() => (view.state ? matching.filter(({ state }) => state === view.state) : matching), [matching, view.state]);

  const taken = useMemo(() => {
    const by = columns.find(({ id }) => id === view.sort.column) ?? columns[0];
    return ofRows(kc, name === 'jobs' ? jobs : pods, view.namespace, () => (by ? sortRows(shown, by.value, view.sort.descending) as readonly R[] : shown), exported);
  }, [kc, name, view.namespace, view.sort, shown, columns, exported]);
  const without = useMemo(() => [...untold(columns, rows, view.namespace), ...hiddenColumns(columns, view.columns)], [columns, rows, view.namespace, view.columns]);
  const filtered = view.state !== '' || view.search !== '';
  const filters = (
    <>
      <NamespaceFilter selected={view.namespace} visible={visible} />
      <Search value={view.search} label={frame.search[name] ?? ''} />
    </>
  );
  if (found.status === 'denied' || found.status === 'failed') {
    return (
      <>
        <div className="toolbar">
          {filters}
          <ViewMenu />
        </div>
        <Refused table={name} namespace={namespace} visible={visible} status={found.status} error={found.error} onRetry={watch.retry} />
      </>
    );
  }
  return (
    <>
      <div className="toolbar">
        {filters}
        <StateFilter states={states} counts={counts} total={matching.length} selected={view.state} loading={loading} />
        <ViewMenu columns={columns} />
        {shown.length > 0 && <Export of={taken} />}
      </div>
      <DataTable name={name} columns={columns} without={without} chosen={view.columns !== ''} rows={shown} sort={view.sort} onSort={(sort) => setView({ sort })} narrowLine={narrowLine} href={href} asked={`${view.namespace} ${view.state} ${view.search}`}>
        {loading ? (
          <span className="loading">{t.loading[name]}</span>
        ) : filtered && rows.length > 0 ? (
          <>
            <p>{t.noneMatches[name](rows.length)}</p>
            <button type="button" className="button" onClick={() => setView({ search: '', state: '' })}>
              {t.clear}
            </button>
          </>
        ) : (
          <Nothing table={name} namespace={namespace} visible={visible} />
        )}
      </DataTable>
    </>
  );
}

// A table of which the page has no more than what is in sight: a live page of the gateway's, sorted and searched there.

import type { KubeObject, Resource } from '@kubecast/sdk';
import { useKubecast, useLivePage } from '@kubecast/sdk/react';
import { useMemo, useState, type ReactNode } from 'react';
import { t as frame } from '../app/texts.ts';
import { hiddenColumns } from '../columns/columns.ts';
import { Export } from '../export/Export.tsx';
import { ofQuery, type Lines } from '../export/table.ts';
import { Spoken } from '../scheduling/Spoken.tsx';
import { useRested } from '../scheduling/useRested.ts';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { Search } from '../filters/Search.tsx';
import { States } from '../filters/States.tsx';
import { statusPath, whereIs } from '../filters/status.ts';
import { useVisible } from '../filters/visible.ts';
import { DataTable, type Column } from '../table/DataTable.tsx';
import { Nothing } from '../table/Nothing.tsx';
import { Refused } from '../table/Refused.tsx';
import { Tracker, type Row } from '../table/rows.ts';
import { t as words } from '../table/texts.ts';
import { setView, type TableName, type View } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { pathsOf, sortable as sortablePaths, windowOf, windowSize } from './questions.ts';
import { t } from './texts.ts';

export interface VirtualPageProps<T extends KubeObject, R extends Row> {
  readonly name: TableName;
  readonly resource: Resource<T>;
  readonly fields: readonly string[];
  readonly view: View;
  readonly read: (object: T) => R;
  readonly columns: readonly Column<R>[];
  readonly narrowLine: (row: R) => ReactNode;
  readonly href?: (row: R) => string | undefined;
  /** The rows as a file. */
  readonly exported: Lines<R>;
}

/** Changes of what is in sight are told so often at most, in milliseconds. */
const calm = 300;

export function VirtualPage<T extends KubeObject, R extends Row>(props: VirtualPageProps<T, R>): ReactNode {
  const { name, resource, fields, view, read, columns, narrowLine, href, exported } = props;
  const kc = useKubecast();
  const namespace = useRested(view.namespace);
  const search = useRested(view.search);
  const where = whereIs(statusPath, view.state);
  const asked = `${namespace} ${view.state} ${search} ${view.sort.column} ${view.sort.descending}`;

  const [seen, setSeen] = useState({ asked, first: 0 });
  const first = useRested(seen.asked === asked ? seen.first : 0);
  const [known, setKnown] = useState(windowSize);
  const found = useLivePage(resource as Resource<KubeObject>, {
    namespace, search, where, fields, sort: pathsOf(name, view.sort), limit: windowSize, offset: windowOf(first, known), conflate: calm, deltas: true,
  });
  const total = found.total ?? 0;
  if (found.total !== undefined && found.total !== known) setKnown(found.total);

  const tracker = useMemo(() => new Tracker(read), [read]);
  const rows = useMemo(() => tracker.read(found.data as unknown as readonly T[], false), [tracker, found.data]);
  const sortable = useMemo(() => columns.map((column) => ({ ...column, fixed: !(column.id in sortablePaths[name]) })), [columns, name]);

  const taken = useMemo(
    () => ofQuery(kc, resource, { namespace, search, where, fields }, pathsOf(name, view.sort), read, exported),
    [kc, resource, namespace, search, where, fields, name, view.sort, read, exported],
  );
  const without = useMemo(() => [...(namespace ? ['namespace'] : []), ...hiddenColumns(columns, view.columns)], [namespace, columns, view.columns]);
  const visible = useVisible(namespace, found);
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
        <Refused table={name} namespace={namespace} visible={visible} status={found.status} error={found.error} onRetry={found.retry} />
      </>
    );
  }
  const filtered = view.state !== '' || view.search !== '';
  const loading = found.total === undefined;
  return (
    <>
      <div className="toolbar">
        {filters}
        <States resource={resource} namespace={namespace} search={search} selected={view.state} found={found.status === 'live' ? found.total : undefined} />
        <span className="large-total">{loading ? '' : t.total(total)}</span>
        <Spoken text={found.status === 'live' && !loading ? t.total(total) : ''} asked={asked} />
        <ViewMenu columns={columns} />
        {total > 0 && <Export of={taken} />}
      </div>
      <DataTable
        name={name}
        columns={sortable}
        without={without}
        chosen={view.columns !== ''}
        rows={rows}
        places={{ offset: found.offset ?? 0, total, onFirst: (index) => setSeen((before) => (before.asked === asked && before.first === index ? before : { asked, first: index })) }}
        sort={view.sort}
        onSort={(next) => setView({ sort: next })}
        narrowLine={narrowLine}
        href={href}
        asked={asked}
      >
        {loading ? (
          <span className="loading">{words.loading[name]}</span>
        ) : filtered ? (
          <>
            <p>{t.noneMatches}</p>
            <button type="button" className="button" onClick={() => setView({ search: '', state: '' })}>
              {words.clear}
            </button>
          </>
        ) : (
          <Nothing table={name} namespace={namespace} visible={visible} />
        )}
      </DataTable>
    </>
  );
}

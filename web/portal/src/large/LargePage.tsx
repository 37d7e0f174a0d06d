// A table of which the page has no more than what is in sight: a live page of the gateway's, sorted and searched there.

import type { KubeObject, Resource } from '@kubecast/sdk';
import { useCount, useKubecast, useLivePage, useWatch } from '@kubecast/sdk/react';
import { useMemo, useState, type ReactNode } from 'react';
import { Notice } from '../app/Notice.tsx';
import { t as frame } from '../app/texts.ts';
import { Export } from '../export/Export.tsx';
import type { Cell } from '../export/csv.ts';
import { ofQuery } from '../export/table.ts';
import type { TableName } from '../feed/kinds.ts';
import { useRested } from '../feed/useRested.ts';
import { NamespaceInput, NamespaceSelect } from '../filters/NamespacePicker.tsx';
import { Search } from '../filters/Search.tsx';
import { StateFilter } from '../filters/StateFilter.tsx';
import { namespaces, pods } from '../job/resources.ts';
import { DataTable, type Column } from '../table/DataTable.tsx';
import { Tracker, type Row } from '../table/rows.ts';
import { t as words } from '../table/texts.ts';
import { setView, type View } from '../view/view.ts';
import { pathsOf, questions, windowOf, windowSize } from './questions.ts';
import { t } from './texts.ts';

export interface LargePageProps<T extends KubeObject, R extends Row> {
  readonly name: TableName;
  readonly resource: Resource<T>;
  readonly fields: readonly string[];
  readonly view: View;
  readonly read: (object: T) => R;
  readonly columns: readonly Column<R>[];
  readonly narrowLine: (row: R) => ReactNode;
  readonly href?: (row: R) => string | undefined;
  /** The rows as a file. */
  readonly exported: { readonly header: readonly string[]; readonly line: (row: R) => readonly Cell[] };
}

/** Changes of what is in sight are told so often at most, in milliseconds. */
const calm = 300;

export function LargePage<T extends KubeObject, R extends Row>(props: LargePageProps<T, R>): ReactNode {
  const { name, resource, fields, view, read, columns, narrowLine, href, exported } = props;
  const kc = useKubecast();
  const { sort, states } = questions[name];
  const namespace = useRested(view.namespace);
  const search = useRested(view.search);
  const where = Object.hasOwn(states, view.state) ? states[view.state] : undefined;
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
  const sortable = useMemo(() => columns.map((column) => ({ ...column, fixed: !(column.id in sort) })), [columns, sort]);

  const taken = useMemo(
    () => ofQuery(kc, resource, { namespace, search, where, fields }, pathsOf(name, view.sort), read, exported),
    [kc, resource, namespace, search, where, fields, name, view.sort, read, exported],
  );
  const without = useMemo(() => (namespace ? ['namespace'] : []), [namespace]);
  const visible = found.namespaces;
  const filters = (
    <>
      <Namespaces visible={visible} selected={view.namespace} />
      <Search value={view.search} label={frame.search[name] ?? ''} />
    </>
  );

  if (found.status === 'denied' || found.status === 'closed') {
    return (
      <>
        <div className="toolbar">{filters}</div>
        <Notice title={t.denied} said={found.error?.message} onRetry={found.retry}>
          {t.deniedWhy}
        </Notice>
      </>
    );
  }
  const filtered = view.state !== '' || view.search !== '';
  const loading = found.total === undefined;
  return (
    <>
      <div className="toolbar">
        {filters}
        {name === 'pods' ? <PodStates namespace={namespace} search={search} selected={view.state} /> : <StateFilter states={Object.keys(states)} selected={view.state} loading={false} />}
        <span className="large-total" role="status">
          {loading ? '' : t.total(total)}
        </span>
        {total > 0 && <Export of={taken} />}
      </div>
      <DataTable
        name={name}
        columns={sortable}
        without={without}
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
          <p>{frame.empty[name](view.namespace, visible !== undefined)}</p>
        )}
      </DataTable>
    </>
  );
}

/** To choose from, or to be entered by whoever may not list them. */
function Namespaces({ visible, selected }: { readonly visible: readonly string[] | undefined; readonly selected: string }): ReactNode {
  const { data, status } = useWatch(namespaces, { fields: ['metadata.name'] });
  const names = useMemo(() => data.map(({ metadata }) => metadata.name), [data]);
  return status === 'denied' && !visible ? <NamespaceInput selected={selected} /> : <NamespaceSelect names={names} visible={visible} selected={selected} />;
}

/** How many there are in each phase, as the gateway counts them. */
function PodStates({ namespace, search, selected }: { readonly namespace: string; readonly search: string; readonly selected: string }): ReactNode {
  const { data, status } = useCount(pods, ['status.phase'], { namespace, search, conflate: 1_000 });
  const counts = useMemo(() => new Map(data.map(({ value, count }) => [value, count])), [data]);
  const total = data.reduce((sum, { count }) => sum + count, 0);
  return <StateFilter states={Object.keys(questions.pods.states)} counts={counts} total={total} selected={selected} loading={status === 'loading'} />;
}

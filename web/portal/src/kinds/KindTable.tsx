// The objects of a kind by its own columns. Which there are is a live page; what stands in the columns, a Table that is read again when one has changed.

import { defineResource, isFinal, type KubeObject, pathOf } from '@kubecast/sdk';
import { useKubecast, useLivePage } from '@kubecast/sdk/react';
import { useCallback, useDeferredValue, useMemo, useState, type ReactNode } from 'react';
import { Age } from '../age/Age.tsx';
import { Notice } from '../app/Notice.tsx';
import { shownColumns, type Choosable } from '../columns/columns.ts';
import { Dated, useAway } from '../connection/Dated.tsx';
import { Export } from '../export/Export.tsx';
import { ofKind } from '../export/table.ts';
import { NamespaceFilter } from '../filters/NamespaceFilter.tsx';
import { Search } from '../filters/Search.tsx';
import { States } from '../filters/States.tsx';
import { statusPath, whereIs } from '../filters/status.ts';
import { useVisible } from '../filters/visible.ts';
import { timeOf } from '../jobs/job.ts';
import { CutName } from '../listing/CutName.tsx';
import { PlainTable, type PlainColumn } from '../listing/PlainTable.tsx';
import { useReading } from '../polling/polling.ts';
import { wordOf } from '../state/said.ts';
import { StateIcon, StateMark } from '../state/StateMark.tsx';
import { formatNumber } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { linkTo, linkToObject, setView, type View } from '../view/view.ts';
import { ViewMenu } from '../viewmenu/ViewMenu.tsx';
import { exactAnswerTo } from '../exact/exact.ts';
import { cellsOf, tableForm } from './columns.ts';
import type { Kind } from './discovery.ts';
import { nodeCells, nodeFields, type NodeCells } from './nodes.ts';
import { t } from './texts.ts';

const fields = ['metadata.creationTimestamp', statusPath];
const fieldsOfNodes = [...fields, ...nodeFields];

/** With its status as the gateway derives it, which is what chips count. */
type Listed = KubeObject & { readonly $status?: string };
/** So many at first, and so many more at a time, as many as a live page may have; beyond that one leafs. */
const some = 100;
const most = 500;

const paths: Readonly<Record<string, string>> = { name: 'metadata.name', namespace: 'metadata.namespace', age: 'metadata.creationTimestamp' };

/** The newest first is an age that ascends. */
function order({ column, descending }: View['sort']): readonly string[] {
  const path = (Object.hasOwn(paths, column) ? paths[column] : undefined) ?? 'metadata.creationTimestamp';
  return [(path === paths.age) === descending ? path : `-${path}`];
}

interface KindRow {
  readonly uid: string;
  readonly name: string;
  readonly namespace: string;
  readonly created: number | undefined;
  readonly status: string;
  readonly cells: readonly string[] | undefined;
  readonly node: NodeCells | undefined;
}

export function KindTable({ kind, view }: { kind: Kind; view: View }): ReactNode {
  const kc = useKubecast();
  const isNodes = kind.id === 'nodes';
  const search = useDeferredValue(view.search);
  const namespace = kind.namespaced ? view.namespace : '';
  const resource = useMemo(() => defineResource<Listed>()(kind), [kind]);
  const sort = order(view.sort).join();
  const by = kind.id === 'events' ? 'reason' : statusPath;
  const where = whereIs(by, view.state);
  const asked = `${kind.id} ${namespace} ${search} ${view.state} ${sort}`;
  const [leaf, setLeaf] = useState({ asked, offset: 0, limit: some });
  const { offset, limit } = leaf.asked === asked ? leaf : { offset: 0, limit: leaf.limit };
  const turn = (to: number, size = most): void => setLeaf({ asked, offset: to, limit: size });
  const { data, status, total, offset: first = 0, error, namespaces, retry } = useLivePage(resource, { namespace, search, where, sort: [sort], limit, offset, fields: isNodes ? fieldsOfNodes : fields });
  const visible = useVisible(namespace, { namespaces, status });
  const read = useCallback(() => {
    const path = pathOf(resource, { namespace, search, where });
    const query = new URLSearchParams({ limit: String(limit), offset: String(offset), sort });
    return exactAnswerTo(kc, `${path}${path.includes('?') ? '&' : '?'}${query.toString()}`, { headers: { Accept: tableForm } }).then((table) => cellsOf(table, true));
  }, [kc, resource, namespace, search, where, sort, limit, offset]);
  const table = useReading(read, data);

  const known = table.data;
  const rows = useMemo(
    () =>
      data.map((object): KindRow => {
        const { metadata, $status = '' } = object;
        return {
          status: $status,
          uid: metadata.uid,
          name: metadata.name,
          namespace: metadata.namespace ?? '',
          created: timeOf(metadata.creationTimestamp),
          cells: known?.rows.get(metadata.uid)?.cells,
          node: isNodes ? nodeCells(object) : undefined,
        };
      }),
    [data, known, isNodes],
  );
  const columns = useMemo(
    (): readonly (PlainColumn<KindRow> & Choosable)[] => [
      { id: 'name', header: t.name, sortable: true, cell: ({ name }) => <CutName text={name} /> },
      ...(kind.namespaced && namespace === '' ? [{ id: 'namespace', header: t.namespace, sortable: true, cell: (row: KindRow) => <span translate="no">{row.namespace}</span> }] : []),
      ...(known?.columns ?? []).map(({ id, name, numeric, wide }, n) => ({ id, header: name, foreign: true, extra: wide, numeric, cell: ({ cells, status: state, node }: KindRow) => <Cell text={cells?.[n]} {...(id === 'status' && { state, troubles: node?.troubles })} /> })),
      ...(isNodes ? [{ id: 'gpus', header: t.gpus, numeric: true, cell: ({ node }: KindRow) => (node?.gpus ? formatNumber(node.gpus) : <span className="none">–</span>) }] : []),
      { id: 'age', header: t.age, sortable: true, cell: ({ created }) => <Age since={created} /> },
    ],
    [known?.columns, kind.namespaced, namespace, isNodes],
  );
  const shown = useMemo(() => shownColumns(columns, view.columns), [columns, view.columns]);

  const taken = useMemo(() => ofKind(kc, resource, kind.namespaced, { namespace, search, where }), [kc, resource, kind.namespaced, namespace, search, where]);

  const oldCells = useAway() === undefined && table.error !== undefined;
  return (
    <>
      <div className="toolbar">
        <a className="toolbar-back" href={linkTo('kinds', { ...view, search: '' })}>
          {t.all}
        </a>
        <h1 id="kind-title" className="toolbar-title" translate="no">
          {kind.kind}
        </h1>
        {kind.namespaced && <NamespaceFilter selected={view.namespace} visible={visible} />}
        <Search value={view.search} label={t.searchObjects} />
        <States resource={resource} namespace={namespace} search={search} selected={view.state} found={status === 'live' ? total : undefined} by={by} />
        {total !== undefined && <span className="toolbar-end">{t.count(total)}</span>}
        <ViewMenu columns={columns} />
        {rows.length > 0 && <Export of={taken} />}
      </div>
      {isFinal({ status }) ? (
        <Notice title={t.denied} said={error?.message} onRetry={retry}>
          {kind.namespaced && t.deniedWhy}
        </Notice>
      ) : (
        <Dated asOf={table.at} why={oldCells ? t.oldCells : undefined}>
          <PlainTable
            labelledBy="kind-title"
            columns={columns.filter(({ id }) => shown.has(id))}
            rows={rows}
            keyOf={({ uid }) => uid}
            href={(row) => linkToObject(kind.id, row.namespace, row.name, view)}
            sort={view.sort}
            onSort={(column) => setView({ sort: { column, descending: column === view.sort.column && !view.sort.descending } })}
          >
            {rows.length === 0 && total === 0 && <p className="job-none">{view.state ? t.noneSo : view.search ? t.noMatch : t.empty}</p>}
            {rows.length === 0 && total === undefined && <p className="job-none">{t.loading}</p>}
            {total !== undefined && (total > rows.length || offset > 0) && (
              <nav className="plain-more" aria-label={t.leaf}>
                {offset > 0 && <LeafButton text={t.before(most)} onTurn={() => turn(Math.max(0, Math.min(first, total) - most))} />}
                {rows.length > 0 && t.shown(first + 1, first + rows.length, total)}
                {limit < most && <LeafButton text={t.more} onTurn={() => turn(offset, Math.min(most, limit + some))} />}
                {limit === most && first + rows.length < total && <LeafButton text={t.after(Math.min(most, total - first - rows.length))} onTurn={() => turn(first + most)} />}
              </nav>
            )}
          </PlainTable>
        </Dated>
      )}
    </>
  );
}

function LeafButton({ text, onTurn }: { text: string; onTurn: () => void }): ReactNode {
  return (
    <button type="button" className="button" onClick={onTurn}>
      {text}
    </button>
  );
}

/** A cell that is not there yet is not the same as one that is empty. One that says the state that chips count says it as they do. */
function Cell({ text, state = '', troubles = [] }: { text: string | undefined; state?: string; /** What presses it though it is in this state. */ troubles?: readonly string[] | undefined }): ReactNode {
  if (text === undefined) return <span className="none">…</span>;
  if (text === '') return <span className="none">–</span>;
  if (text === state) {
    return (
      <span className="kind-states">
        <StateMark state={state} detail="" message="" />
        {troubles.length > 0 && (
          <span className="kind-trouble" title={t.pressed}>
            <StateIcon state="Pressed" /> <span translate="no">{troubles.map(wordOf).join(marks.list)}</span>
          </span>
        )}
      </span>
    );
  }
  return (
    <span title={text} translate="no">
      {text}
    </span>
  );
}

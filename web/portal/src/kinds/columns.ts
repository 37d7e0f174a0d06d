// A kind's own columns, as `kubectl get` prints them: the API server's for its own kinds, the printer columns of a resource definition for others.

export interface Cells {
  /** But for the name, the namespace and the age, which the portal tells by itself. */
  readonly columns: readonly { readonly id: string; readonly name: string; readonly numeric: boolean; /** `kubectl get -o wide` prints it. */ readonly wide: boolean }[];
  /** By uid, in the order of the columns, with the version at which they are true. */
  readonly rows: ReadonlyMap<string, { readonly name: string; readonly namespace: string; readonly created: string; readonly version: string; readonly cells: readonly string[] }>;
}

interface Table {
  readonly columnDefinitions?: readonly { readonly name: string; readonly type: string; readonly format?: string; readonly priority?: number }[];
  readonly rows?: readonly {
    readonly cells?: readonly unknown[];
    readonly object?: { readonly metadata?: { readonly uid?: string; readonly name?: string; readonly namespace?: string; readonly creationTimestamp?: string; readonly resourceVersion?: string } };
  }[] | null;
}

export const tableForm = 'application/json;as=Table;v=v1;g=meta.k8s.io';

/** Ids of the portal's own columns beside them, which no other column has. */
const own = ['name', 'namespace', 'age'];

/** As it stands in an address. */
function idOf(name: string, ids: readonly string[]): string {
  const id = name.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, '-').replace(/^-|-$/g, '') || 'own';
  return ids.includes(id) ? idOf(`own ${name}`, ids) : id;
}

/** With what is of lesser interest if that is asked for. */
export function cellsOf(document: unknown, wide = false): Cells {
  const { columnDefinitions = [], rows } = document as Table;
  const shown = columnDefinitions
    .map((column, n) => ({ ...column, n }))
    .filter(({ name, format, priority = 0 }) => (priority === 0 || wide) && format !== 'name' && name !== 'Age');
  const ids = shown.reduce((before: readonly string[], { name }) => [...before, idOf(name, [...own, ...before])], []);
  return {
    columns: shown.map(({ name, type, priority = 0 }, n) => ({ id: ids[n] ?? '', name, numeric: type === 'integer' || type === 'number', wide: priority > 0 })),
    rows: new Map(
      // Null where there is none, of kinds that the API server has no columns of.
      (rows ?? []).map(({ cells = [], object }) => {
        const { uid = '', name = '', namespace = '', creationTimestamp: created = '', resourceVersion: version = '' } = object?.metadata ?? {};
        return [uid, { name, namespace, created, version, cells: shown.map(({ n }) => textOf(cells[n])) }];
      }),
    ),
  };
}

function textOf(cell: unknown): string {
  if (cell === null || cell === undefined || cell === '<none>' || cell === '<unknown>') return '';
  return typeof cell === 'string' ? cell : typeof cell === 'number' || typeof cell === 'bigint' || typeof cell === 'boolean' ? String(cell) : JSON.stringify(cell, (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value));
}

// Which columns are worth their place.

import type { Column } from './DataTable.tsx';
import type { Row } from './rows.ts';

/** The ids of columns that would say the same in each row: the namespace, where one is chosen, and what no row has. */
export function untold<R extends Row>(columns: readonly Pick<Column<R>, 'id' | 'sparse' | 'value'>[], rows: readonly R[], namespace: string): readonly string[] {
  return columns.filter(({ id, sparse, value }) => (id === 'namespace' ? namespace !== '' : sparse && !rows.some((row) => value(row)))).map(({ id }) => id);
}

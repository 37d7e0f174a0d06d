// Which columns of a table are shown. What somebody has chosen is part of the address, and so of saved views; what the table shows by itself is not.

export interface Choosable {
  readonly id: string;
  readonly header: string;
  /** The header is the cluster's, and has no translation. */
  readonly foreign?: boolean | undefined;
  /** Shown to those who choose it. */
  readonly extra?: boolean | undefined;
}

const byItself = (columns: readonly Choosable[]): readonly Choosable[] => columns.filter(({ extra }, n) => n === 0 || !extra);

/** The ids of the columns that are shown: the first, which names the row, and those of the address. Of what the table does not have, nothing is said. */
export function shownColumns(columns: readonly Choosable[], address: string): ReadonlySet<string> {
  const named = new Set(address.split(' '));
  const known = columns.filter(({ id }) => named.has(id));
  return new Set([...columns.slice(0, 1), ...(known.length > 0 ? known : byItself(columns))].map(({ id }) => id));
}

/** The ids of those that are not. */
export function hiddenColumns(columns: readonly Choosable[], address: string): readonly string[] {
  const shown = shownColumns(columns, address);
  return columns.filter(({ id }) => !shown.has(id)).map(({ id }) => id);
}

/** What the address says once a column is shown that was not, or is shown no more; empty: what the table shows by itself. */
export function withColumn(columns: readonly Choosable[], address: string, id: string): string {
  const shown = new Set(shownColumns(columns, address));
  if (!shown.delete(id)) shown.add(id);
  const chosen = columns.filter((one, n) => n > 0 && shown.has(one.id));
  const usual = byItself(columns).slice(1);
  if (chosen.length === usual.length && chosen.every((one, n) => one === usual[n])) return '';
  return chosen.map((one) => one.id).join(' ') || (columns[0]?.id ?? '');
}

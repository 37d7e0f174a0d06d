import type { ReactNode } from 'react';
import { setView, useView } from '../view/view.ts';
import { shownColumns, withColumn, type Choosable } from './columns.ts';
import { t } from './texts.ts';
import './columns.css';

/** Of all columns but the first, which names the row. */
export function ColumnChoice({ columns }: { readonly columns: readonly Choosable[] }): ReactNode {
  const address = useView().columns;
  const shown = shownColumns(columns, address);
  return (
    <fieldset className="columns">
      <legend>{t.columns}</legend>
      {columns.slice(1).map(({ id, header, foreign }) => (
        <label key={id} translate={foreign ? 'no' : undefined}>
          <input type="checkbox" checked={shown.has(id)} onChange={() => setView({ columns: withColumn(columns, address, id) })} />
          {header}
        </label>
      ))}
      {address !== '' && (
        <button type="button" className="button button-small" onClick={() => setView({ columns: '' })}>
          {t.usual}
        </button>
      )}
    </fieldset>
  );
}

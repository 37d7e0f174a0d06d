// How a table is looked at, and what of it was saved under a name. Its button has the name of what is shown.

import type { ReactNode } from 'react';
import { ColumnChoice } from '../columns/ColumnChoice.tsx';
import type { Choosable } from '../columns/columns.ts';
import { DensityChoice } from '../density/DensityChoice.tsx';
import { Menu } from '../menu/Menu.tsx';
import { Saved } from '../saved/Saved.tsx';
import { shownOf, useSaved } from '../saved/saved.ts';
import { useView } from '../view/view.ts';
import { t } from './texts.ts';
import './viewmenu.css';

export function ViewMenu({ columns }: { /** Those to choose from; undefined: there is no table. */ readonly columns?: readonly Choosable[] }): ReactNode {
  const shown = shownOf(useSaved()[0], useView());
  const label = shown ? (
    <>
      {t.view}:{' '}
      <bdi className="view-name" translate="no">
        {shown.name}
      </bdi>
    </>
  ) : (
    t.view
  );
  return (
    <Menu label={label}>
      <div className="view-menu">
        <Saved />
        {columns && <ColumnChoice columns={columns} />}
        <DensityChoice />
      </div>
    </Menu>
  );
}

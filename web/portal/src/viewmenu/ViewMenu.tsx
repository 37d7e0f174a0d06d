// How a table is looked at.

import type { ReactNode } from 'react';
import { DensityChoice } from '../density/DensityChoice.tsx';
import { Menu } from '../menu/Menu.tsx';
import { t } from './texts.ts';

export function ViewMenu(): ReactNode {
  return (
    <Menu label={t.view}>
      <DensityChoice />
    </Menu>
  );
}

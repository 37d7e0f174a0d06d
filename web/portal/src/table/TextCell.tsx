import type { ReactNode } from 'react';
import { CutName } from '../listing/CutName.tsx';

/** A name in a cell, cut in the middle where it does not fit; a dash where there is none. */
export function TextCell({ text, strong = false }: { text: string; strong?: boolean }): ReactNode {
  if (text === '') return <span className="none">–</span>;
  return (
    <span className={strong ? 'cell-name' : undefined}>
      <CutName text={text} />
    </span>
  );
}

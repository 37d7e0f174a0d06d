import { useId, useState, type ReactNode } from 'react';
import { useMediaQuery } from '../table/useMediaQuery.ts';
import { t } from './texts.ts';

/** Filters behind a button where they would take half of the screen; it says how many of them are set. */
export function Folded({ set, children }: { readonly set: number; readonly children: ReactNode }): ReactNode {
  const narrow = useMediaQuery('(max-width: 700px)');
  const [open, setOpen] = useState(false);
  const id = useId();
  if (!narrow) return children;
  return (
    <>
      <button type="button" className="button" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        {set > 0 ? t.filtersSet(set) : t.filters}
      </button>
      {open && (
        <div className="toolbar-folded" id={id}>
          {children}
        </div>
      )}
    </>
  );
}

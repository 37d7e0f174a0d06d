import { useId, useState, type ReactNode } from 'react';
import { useMediaQuery } from '../table/useMediaQuery.ts';
import { t } from './texts.ts';

interface FoldedProps {
  /** How many of them are set. */
  readonly set: number;
  /** What they are, if they are no filters. */
  readonly label?: string;
  readonly children: ReactNode;
}

/** Filters, or other tools, behind a button where they would take half of the screen; it says how many of them are set. */
export function Folded({ set, label = t.filters, children }: FoldedProps): ReactNode {
  const narrow = useMediaQuery('(max-width: 700px)');
  const [open, setOpen] = useState(false);
  const id = useId();
  if (!narrow) return children;
  return (
    <>
      <button type="button" className="button" aria-expanded={open} aria-controls={open ? id : undefined} onClick={() => setOpen(!open)}>
        {set > 0 ? t.labelSet(label, set) : label}
      </button>
      {open && (
        <div className="toolbar-folded" id={id}>
          {children}
        </div>
      )}
    </>
  );
}

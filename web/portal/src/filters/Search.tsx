import type { ReactNode } from 'react';
import { firstRow } from '../shortcuts/rows.ts';
import { useMediaQuery } from '../table/useMediaQuery.ts';
import { setView } from '../view/view.ts';

/** Text search. `/` from anywhere goes there (../shortcuts/shortcuts.ts), which is told where there is a keyboard, Escape empties it, Enter and the arrow that points down lead on to what was found. */
export function Search({ value, label }: { value: string; label: string }): ReactNode {
  const touched = useMediaQuery('(hover: none) and (pointer: coarse)');
  return (
    <input
      type="search"
      className="field search"
      aria-label={label}
      aria-keyshortcuts="/"
      placeholder={touched ? label : `${label}  ( / )`}
      value={value}
      spellCheck={false}
      autoComplete="off"
      onChange={(event) => setView({ search: event.target.value })}
      onKeyDown={(event) => {
        if (event.key === 'Escape') setView({ search: '' });
        else if ((event.key === 'Enter' || event.key === 'ArrowDown') && !event.nativeEvent.isComposing && firstRow()) event.preventDefault();
      }}
    />
  );
}

import type { ReactNode } from 'react';
import { firstRow } from '../shortcuts/rows.ts';
import { setView } from '../view/view.ts';

/** Text search. `/` from anywhere goes there (../shortcuts/shortcuts.ts), Escape empties it, Enter and the arrow that points down lead on to what was found. */
export function Search({ value, label }: { value: string; label: string }): ReactNode {
  return (
    <input
      type="search"
      className="field search"
      aria-label={label}
      aria-keyshortcuts="/"
      placeholder={`${label}  ( / )`}
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

import type { ReactNode } from 'react';
import { setView } from '../view/view.ts';

/** Text search. `/` from anywhere goes there (../shortcuts/shortcuts.ts), Escape empties it. */
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
      }}
    />
  );
}

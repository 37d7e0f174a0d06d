import { useEffect, useRef, type ReactNode } from 'react';
import { setView } from '../view/view.ts';

/** Text search. `/` from anywhere goes there, Escape empties it. */
export function Search({ value, label }: { value: string; label: string }): ReactNode {
  const input = useRef<HTMLInputElement>(null);

  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const typing = event.target instanceof Element && event.target.closest('input, select, textarea');
      if (event.key !== '/' || typing || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      input.current?.select();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  }, []);

  return (
    <input
      ref={input}
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

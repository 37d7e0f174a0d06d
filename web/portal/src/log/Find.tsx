import type { ReactNode } from 'react';
import { t } from './texts.ts';

interface FindProps {
  readonly search: string;
  readonly onSearch: (text: string) => void;
  /** Whether there is something to go to. */
  readonly any: boolean;
  readonly onGo: (step: 1 | -1) => void;
}

/** What is searched for in a log, and the way from match to match: Enter goes back in time, as whoever reads an end does. */
export function Find({ search, onSearch, any, onGo }: FindProps): ReactNode {
  return (
    <span className="log-find">
      <input
        type="search"
        className="field log-search"
        aria-label={t.search}
        placeholder={t.search}
        value={search}
        spellCheck={false}
        onChange={(event) => onSearch(event.target.value)}
        onKeyDown={(event) => event.key === 'Enter' && onGo(event.shiftKey ? 1 : -1)}
      />
      <button type="button" className="button" aria-label={t.previous} title={t.previous} disabled={!any} onClick={() => onGo(-1)}>
        ↑
      </button>
      <button type="button" className="button" aria-label={t.next} title={t.next} disabled={!any} onClick={() => onGo(1)}>
        ↓
      </button>
    </span>
  );
}

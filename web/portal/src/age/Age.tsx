import type { ReactNode } from 'react';
import { useNow } from './clock.ts';
import { formatDuration } from './duration.ts';

export function formatTime(time: number): string {
  return new Date(time).toLocaleTimeString([], { hour: '2-digit', minute: '2-digit', second: '2-digit' });
}

/** How long ago something was, ticking; or how long it took, once it is over. */
export function Age({ since, until }: { since: number | undefined; until?: number | undefined }): ReactNode {
  const now = useNow();
  if (since === undefined) return <span className="none">–</span>;
  return (
    <time dateTime={new Date(since).toISOString()} title={new Date(since).toLocaleString()}>
      {formatDuration((until ?? now) - since)}
    </time>
  );
}

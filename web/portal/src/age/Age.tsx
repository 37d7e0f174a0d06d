import { createContext, useContext, type ReactNode } from 'react';
import { useNow } from './clock.ts';
import { formatDate, formatDuration } from '../texts/format.ts';

/** As of when everything below is, in milliseconds since the epoch; undefined: it is as of now. Ages stop there. */
export const AsOf = createContext<number | undefined>(undefined);

/** How long ago something was, ticking; or how long it took, once it is over. */
interface AgeProps {
  readonly since: number | undefined;
  readonly until?: number | undefined;
  /** Puts it in words, such as "3m ago". */
  readonly in?: ((span: string) => string) | undefined;
}

export function Age({ since, until, in: put = String }: AgeProps): ReactNode {
  const ticking = useNow();
  const now = useContext(AsOf) ?? ticking;
  if (since === undefined) return <span className="none">–</span>;
  return (
    <time dateTime={new Date(since).toISOString()} title={formatDate(since)}>
      {put(formatDuration((until ?? now) - since))}
    </time>
  );
}

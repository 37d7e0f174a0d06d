import type { ReactNode } from 'react';
import { t } from './texts.ts';

interface NoticeProps {
  readonly title: string;
  /** The gateway's own words. */
  readonly said: string | undefined;
  readonly onRetry: () => void;
  readonly children: ReactNode;
}

/** Stands where a table would, and says why there is none. */
export function Notice({ title, said, onRetry, children }: NoticeProps): ReactNode {
  return (
    <div className="notice" role="alert">
      <h2>{title}</h2>
      <p>{children}</p>
      {said && <p className="notice-said" translate="no">{said}</p>}
      <button type="button" className="button" onClick={onRetry}>
        {t.tryAgain}
      </button>
    </div>
  );
}

/** What the caller may not see. */
export function Forbidden({ said, onRetry }: Pick<NoticeProps, 'said' | 'onRetry'>): ReactNode {
  return (
    <Notice title={t.notYours} said={said} onRetry={onRetry}>
      {t.notYoursWhy}
    </Notice>
  );
}

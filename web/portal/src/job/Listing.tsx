import { isFinal, type Status } from '@kubecast/sdk';
import type { ReactNode } from 'react';
import { t } from './texts.ts';

interface ListingProps {
  readonly status: Status;
  /** The gateway's own words, if it refuses. */
  readonly message: string | undefined;
  /** Said where they may not be seen, and where there are none. */
  readonly denied: string;
  readonly none: string;
  readonly headers: readonly string[];
  /** The rows of the table's body. */
  readonly children: readonly ReactNode[];
}

/** A short table that is there at once and whole; or why there is none. */
export function Listing({ status, message, denied, none, headers, children }: ListingProps): ReactNode {
  if (isFinal({ status })) return (
      <p className="job-none">
        {denied} <span translate="no">{message}</span>
      </p>
    );
  if (children.length === 0) return <p className="job-none">{status === 'loading' ? t.loading : none}</p>;
  return (
    <div className="job-scroller" tabIndex={0}>
      <table className="job-table">
        <thead>
          <tr>
            {headers.map((header) => (
              <th key={header} scope="col">
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>{children}</tbody>
      </table>
    </div>
  );
}

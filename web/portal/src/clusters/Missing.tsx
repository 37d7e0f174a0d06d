import type { ReactNode } from 'react';
import { isAway } from '../connection/describe.ts';
import { formatTime } from '../texts/format.ts';
import { isForbidden } from '../polling/polling.ts';
import type { Cluster, Known } from './together.ts';
import { t } from './texts.ts';
import './clusters.css';

/** Whether what a cluster has now is not known; of one that cannot be read there are the rows as of before, or none. */
export const isMissing = ({ read, told }: Known<unknown>): boolean => read.error !== undefined || isAway(told);

/** The one whose state the page has: one that is there, else one of which there are rows still, so that a lost connection does not bring up what another one refuses. */
export const leading = <T,>(known: readonly Known<T>[]): Known<T> | undefined => known.find((one) => !isMissing(one)) ?? known.find(({ read }) => read.data !== undefined) ?? known[0];

/** Which of several clusters are not shown, or not as of now. */
export function Missing({ clusters, known, onRetry }: { readonly clusters: readonly Cluster[]; readonly known: readonly Known<unknown>[]; readonly onRetry: () => void }): ReactNode {
  const missing = clusters.flatMap(({ name }, n) => {
    const one = known[n];
    return one && isMissing(one) ? [{ name, at: one.read.data === undefined ? undefined : (one.told.asOf ?? one.read.at), denied: isForbidden(one.read.error), said: one.read.error?.message ?? '' }] : [];
  });
  // There at all times, or what is put into it later is not read out.
  return (
    <div role="status">
      {missing.length > 0 && (
        <p className="clusters-missing">
          {missing.map(({ name, at, denied, said }) => (
            <span key={name}>
              <strong translate="no">{name}</strong> {denied ? t.denied : at === undefined ? t.missing : t.asOf(formatTime(at))} <span translate="no">{said}</span>{' '}
            </span>
          ))}
          <button type="button" className="button button-small" onClick={onRetry}>
            {t.again}
          </button>
        </p>
      )}
    </div>
  );
}

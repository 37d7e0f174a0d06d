// Bars of what a queue has and uses. The numbers stand beside them.

import type { ReactNode } from 'react';
import { formatAmount } from '../object/requests.ts';
import type { Use } from './quota.ts';
import { t } from './texts.ts';
import { marks } from '../texts/punctuation.ts';
import './queues.css';

/** By flavor. */
export function Quotas({ uses }: { readonly uses: readonly Use[] }): ReactNode {
  if (uses.length === 0) return <p className="none">{t.noQuotas}</p>;
  const flavors = [...new Set(uses.map(({ flavor }) => flavor))];
  return flavors.map((flavor) => (
    <section key={flavor} className="quota-flavor">
      {flavor && <h3 translate="no">{flavor}</h3>}
      <dl>
        {uses
          .filter((use) => use.flavor === flavor)
          .map((use) => (
            <div key={use.resource} className="quota">
              <dt translate="no">{use.resource}</dt>
              <dd>
                <QuotaBar use={use} />
                <span className="quota-numbers">{numbersOf(use)}</span>
              </dd>
            </div>
          ))}
      </dl>
    </section>
  ));
}

export function numbersOf({ resource, quota, used, borrowed }: Use): string {
  const of = (amount: number): string => formatAmount(resource, amount);
  return [quota === undefined ? t.used(of(used)) : t.of(of(used), of(quota)), borrowed > 0 ? t.borrowed(of(borrowed)) : ''].filter(Boolean).join(marks.comma);
}

/** Its own, and behind a gap what is borrowed; the mark is the quota, where more than that is used. */
export function QuotaBar({ use: { quota, used, borrowed } }: { readonly use: Use }): ReactNode {
  const most = Math.max(quota ?? used, used, Number.MIN_VALUE);
  const at = (amount: number): number => (100 * amount) / most;
  const own = Math.max(0, used - borrowed);
  return (
    <svg className="quota-bar" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect className="quota-room" width="100" height="8" />
      <rect className="quota-own" width={at(own)} height="8" />
      {borrowed > 0 && <rect className="quota-borrowed" x={at(own)} width={at(borrowed)} height="8" />}
    </svg>
  );
}

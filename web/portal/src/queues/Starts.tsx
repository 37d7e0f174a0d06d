// When a job that waits will start, in words: never more exact than it is known.

import type { ExpectedStart, QueuePlace } from '@kubecast/sdk';
import { useContext, type ReactNode } from 'react';
import { AsOf } from '../age/Age.tsx';
import { useNow } from '../age/clock.ts';
import { formatPercent, formatRange } from '../texts/format.ts';
import { marks } from '../texts/punctuation.ts';
import { formatWhen } from '../texts/when.ts';
import { t } from './texts.ts';
import './queues.css';

/** `short`: without how sure that is, which the title says. */
export function Starts({ at, short = false }: { readonly at: ExpectedStart; readonly short?: boolean }): ReactNode {
  const ticking = useNow();
  const now = useContext(AsOf) ?? ticking;
  const sure = t.sure(formatPercent(at.confidence));
  return (
    <span className="starts" title={`${formatWhen(at.from)} – ${formatWhen(at.to)}${marks.comma}${sure}`}>
      {spanUntil(at, now)}
      {!short && at.to > now && <span className="starts-sure">{marks.comma}{sure}</span>}
    </span>
  );
}

export function spanUntil({ from, to }: ExpectedStart, now: number): string {
  if (to <= now) return t.startsLate;
  return from - now < 30_000 ? t.startsWithin(formatRange(0, to - now)) : t.startsIn(formatRange(from - now, to - now));
}

/** A place and a start in a line; `short`: in a few words, for a table. */
export function PlaceHint({ place, short = false }: { readonly place: QueuePlace; readonly short?: boolean }): ReactNode {
  const { position, starts } = place;
  const where = !short ? placeOf(place) : position === null ? '' : t.short(position);
  if (where === '' && !starts) return null;
  return (
    <span className="state-detail place-hint">
      {where}
      {where !== '' && starts && ' · '}
      {starts && <Starts at={starts} short={short} />}
    </span>
  );
}

/** A place as far as it is known. */
export const placeOf = ({ position, clusterPosition }: QueuePlace): string =>
  [position === null ? '' : t.placeIn(position), clusterPosition === null ? '' : t.placeInWhole(clusterPosition)].filter(Boolean).join(' · ');

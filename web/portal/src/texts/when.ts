// A moment as the chosen clock tells it.

import { clock } from './clock.ts';
import { formatDate, formatTime, inZone, length } from './format.ts';
import { locale } from './language.ts';

const day = inZone({ dateStyle: 'short' });

/** The time of today, and with the date of any other day; or how long ago it was. */
export const formatWhen = (time: number): string => (clock === 'relative' ? formatAgo : day.format(time) === day.format() ? formatTime : formatDate)(time);

/** How long ago something was, as a sentence says it. */
export function formatAgo(time: number): string {
  const span = time - Date.now();
  const of = (['day', 'hour', 'minute'] as const).find((one) => Math.abs(span) >= 2 * length[one]) ?? 'second';
  return new Intl.RelativeTimeFormat(locale, { style: 'short' }).format(Math.trunc(span / length[of]), of);
}

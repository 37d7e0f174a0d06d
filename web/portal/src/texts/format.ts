// Numbers, units, dates and plurals, as the page's language writes them.

import { locale, remembered } from './language.ts';

const numbers = new Intl.NumberFormat(locale, { maximumFractionDigits: 1 });
const rules = new Intl.PluralRules(locale);
/** Which clock was chosen is kept there; {@link file://./clock.ts} has them all. Of UTC it is said. */
export const clockKey = 'kubecast.clock';
export const keptClock = remembered(clockKey);
const utc = keptClock === 'utc';
export const inZone = (format: Intl.DateTimeFormatOptions): Intl.DateTimeFormat => new Intl.DateTimeFormat(locale, { ...format, ...(utc && { timeZone: 'UTC' }) });
const hours = { hour: '2-digit', minute: '2-digit' } as const;
const times = inZone({ ...hours, second: '2-digit' });
const minutes = inZone(hours);
const dates = inZone({ dateStyle: 'medium', timeStyle: utc ? 'long' : 'medium' });
const weekdays = inZone({ weekday: 'short', ...hours });
const days = inZone({ weekday: 'short', day: 'numeric', month: 'short' });

const significant = new Intl.NumberFormat(locale, { maximumSignificantDigits: 2 });

/** Hours of something: what is little is told, too. */
export const formatHours = (hours: number): string => (hours < 10 ? significant : numbers).format(hours);

export const formatNumber = (value: number): string => numbers.format(value);

/** The form that goes with a number; `{}` in it is the number. Forms that a language does not have are left out. */
export function plural(count: number, forms: { readonly other: string } & Partial<Record<Intl.LDMLPluralRule, string>>): string {
  return (forms[rules.select(count)] ?? forms.other).replace('{}', formatNumber(count));
}

/** All times are in milliseconds since the epoch. */
export const formatTime = (time: number): string => times.format(time);
/** To the minute, as beside what is counted in minutes. */
export const formatMinute = (time: number): string => minutes.format(time);
export const formatDate = (time: number): string => dates.format(time);
export const formatWeekday = (time: number): string => weekdays.format(time);
/** The day alone, as beside a clock. */
export const formatDay = (time: number): string => days.format(time);

const unit = (name: 'second' | 'minute' | 'hour' | 'day', unitDisplay: 'narrow' | 'long'): Intl.NumberFormat => new Intl.NumberFormat(locale, { style: 'unit', unit: name, unitDisplay });

const narrow = { second: unit('second', 'narrow'), minute: unit('minute', 'narrow'), hour: unit('hour', 'narrow'), day: unit('day', 'narrow') };
export const length = { second: 1_000, minute: 60_000, hour: 3_600_000, day: 86_400_000 };
type Unit = keyof typeof length;

/** As kubectl writes ages: two units at most, fewer as it grows. Clocks differ, so never below zero. */
export function formatDuration(ms: number): string {
  if (!(ms > 0)) return narrow.second.format(0);
  if (ms < 2 * length.minute) return one(ms, 'second');
  if (ms < 10 * length.minute) return two(ms, 'minute', 'second');
  if (ms < 3 * length.hour) return one(ms, 'minute');
  if (ms < 8 * length.hour) return two(ms, 'hour', 'minute');
  if (ms < 2 * length.day) return one(ms, 'hour');
  if (ms < 8 * length.day) return two(ms, 'day', 'hour');
  return one(ms, 'day');
}

const one = (ms: number, large: Unit): string => narrow[large].format(Math.floor(ms / length[large]));

function two(ms: number, large: Unit, small: Unit): string {
  const rest = Math.floor((ms % length[large]) / length[small]);
  return one(ms, large) + (rest > 0 ? narrow[small].format(rest) : '');
}

/** A round span of time in words, such as "15 minutes". */
export const formatSpan = (count: number, of: Unit): string => unit(of, 'long').format(count);

const percent = new Intl.NumberFormat(locale, { style: 'percent' });

/** A share of one. */
export const formatPercent = (share: number): string => percent.format(share);

/** From one length of time to another, both in the unit that goes with the longer: "10–25 min". What is not known to the second is not told so; from 0, only the longer. */
export function formatRange(from: number, to: number): string {
  const of: Unit = to < 90 * length.minute ? 'minute' : to < 2 * length.day ? 'hour' : 'day';
  const format = new Intl.NumberFormat(locale, { style: 'unit', unit: of, unitDisplay: 'short', maximumFractionDigits: of === 'minute' ? 0 : 1 });
  const at = (ms: number): number => ms / length[of];
  const most = of === 'minute' ? Math.max(1, Math.ceil(at(to))) : at(to);
  return from <= 0 ? format.format(most) : format.formatRange(of === 'minute' ? Math.floor(at(from)) : at(from), most);
}

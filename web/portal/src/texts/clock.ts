// By which clock the portal tells times. As with the language, another one loads the page anew: nothing is left over by the old one.

import { remember } from './language.ts';
import { clockKey, keptClock } from './format.ts';

export const clocks = ['local', 'utc', 'relative'] as const;
export type Clock = (typeof clocks)[number];

export const clock: Clock = clocks.find((one) => one === keptClock) ?? 'local';

export const chooseClock = (next: Clock): void => remember(clockKey, next);

// Spans of time, and the steps in which they are shown.

import type { Ends } from '@kubecast/sdk';

const hour = 3_600_000;

/** How much time is looked at, and in what steps it is shown. */
export const spans: Readonly<Record<string, { readonly length: number; readonly step: string; readonly stepLength: number }>> = {
  '1h': { length: hour, step: '5m', stepLength: hour / 12 },
  '24h': { length: 24 * hour, step: '1h', stepLength: hour },
  '168h': { length: 168 * hour, step: '6h', stepLength: 6 * hour },
  '720h': { length: 720 * hour, step: '24h', stepLength: 24 * hour },
};

/** The beginnings of the steps that end now. */
export function stepsUntil(now: number, { length, stepLength }: { readonly length: number; readonly stepLength: number }): readonly number[] {
  const count = Math.round(length / stepLength);
  return Array.from({ length: count }, (_, n) => now - (count - n) * stepLength);
}

/** The number of the step in which a time lies; undefined: in none. */
export function stepOf(at: number, steps: readonly number[], stepLength: number): number | undefined {
  const [first] = steps;
  if (first === undefined || !(at >= first)) return undefined;
  return Math.min(steps.length - 1, Math.floor((at - first) / stepLength));
}

/** How many jobs ended in each step, and how. By the gateway's clock steps begin a moment earlier or later. */
export function endsAt(counted: readonly Ends[], steps: readonly number[], stepLength: number): Readonly<Record<'succeeded' | 'failed' | 'cancelled', readonly number[]>> {
  const none = (): number[] => steps.map(() => 0);
  const sums = { succeeded: none(), failed: none(), cancelled: none() };
  for (const { from, ...ended } of counted) {
    const n = stepOf((from ?? NaN) + stepLength / 2, steps, stepLength);
    if (n !== undefined) for (const how of ['succeeded', 'failed', 'cancelled'] as const) sums[how][n] = (sums[how][n] ?? 0) + ended[how];
  }
  return sums;
}

// What the history sums up: how long jobs waited and ran, and what they used, by whom and when; see "Usage" in wire.md.

import { answerTo, pathOf, type Kubecast } from '@kubecast/sdk';
import { jobs } from '../job/resources.ts';

interface Spread {
  readonly p50: number;
  readonly p90: number;
  readonly max: number;
}

export interface Usage {
  readonly key: string;
  /** Where its step begins, in milliseconds since the epoch. */
  readonly from: number;
  readonly jobs: number;
  /** In seconds, of those that ran; null: none did. */
  readonly waitedSeconds: Spread | null;
  readonly ranSeconds: Spread | null;
  readonly cpuHours: number;
  /** GiB · h. */
  readonly memoryHours: number;
  readonly gpuHours: number;
}

export interface UsageQuery {
  readonly namespace: string;
  readonly by: string;
  readonly since: string;
  /** Without it, all of the time is one. */
  readonly step?: string;
}

export async function usage(kc: Kubecast, { namespace, by, since, step }: UsageQuery): Promise<readonly Usage[]> {
  const query = new URLSearchParams({ view: 'usage', by, since, ...(step && { step }) });
  const answer = await answerTo(kc, `/history${pathOf(jobs, { namespace })}?${query.toString()}`);
  const { items } = answer as { items: readonly (Omit<Usage, 'from'> & { readonly from: string })[] };
  return items.map((item) => ({ ...item, from: Date.parse(item.from) }));
}

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

// What of a queue's quotas is used, and by whom, as numbers.

import type { Queue, QueueResource } from '@kubecast/sdk';
import { isGPU, quantity } from '../object/requests.ts';

export interface Use {
  readonly flavor: string;
  readonly resource: string;
  /** Undefined where it is not known. */
  readonly quota: number | undefined;
  readonly used: number;
  readonly borrowed: number;
}

const known = (text: string | null): number | undefined => (text === null ? undefined : quantity(text));

export const useOf = ({ flavor, resource, quota, used, borrowed }: QueueResource): Use => ({ flavor, resource, quota: known(quota), used: known(used) ?? 0, borrowed: known(borrowed) ?? 0 });

/** What counts, the scarcest first: GPUs, then the rest; nothing that the queue neither has nor uses. */
export function usesOf({ resources }: Queue): readonly Use[] {
  const all = resources.map(useOf).filter(({ quota, used }) => (quota ?? 0) > 0 || used > 0);
  return [...all].sort((a, b) => Number(isGPU(b.resource)) - Number(isGPU(a.resource)));
}

export interface Share {
  /** A namespace; empty: of those that may not be seen. */
  readonly team: string;
  /** By flavor and resource. */
  readonly used: readonly number[];
}

export interface Shares {
  readonly of: readonly { readonly flavor: string; readonly resource: string }[];
  readonly teams: readonly Share[];
}

/** Who uses how much of a ClusterQueue: GPUs where there are any, else all. As far as the queues say so that the caller may see. */
export function sharesOf(clusterQueue: string, queues: readonly Queue[]): Shares {
  const whole = queues.find(({ namespace, name }) => namespace === '' && name === clusterQueue);
  const parts = queues.filter((queue) => queue.namespace !== '' && queue.clusterQueue === clusterQueue);
  const all = [...(whole ? [whole] : []), ...parts].flatMap(usesOf).filter(({ used }) => used > 0);
  const counted = all.some(({ resource }) => isGPU(resource)) ? all.filter(({ resource }) => isGPU(resource)) : all;
  const of = [...new Map(counted.map(({ flavor, resource }) => [`${flavor}/${resource}`, { flavor, resource }])).values()];
  const usedIn = (queue: Queue): number[] => of.map((one) => usesOf(queue).find(({ flavor, resource }) => flavor === one.flavor && resource === one.resource)?.used ?? 0);
  const teams = new Map<string, number[]>();
  for (const part of parts) teams.set(part.namespace, add(teams.get(part.namespace), usedIn(part)));
  const seen = [...teams.values()].reduce(add, of.map(() => 0));
  if (whole) teams.set('', usedIn(whole).map((used, n) => Math.max(0, used - (seen[n] ?? 0))));
  const using = [...teams].map(([team, used]) => ({ team, used })).filter(({ used }) => used.some((amount) => amount > 0));
  return { of, teams: using.sort((a, b) => Number(a.team === '') - Number(b.team === '') || sum(b.used) - sum(a.used) || a.team.localeCompare(b.team)) };
}

const sum = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

function add(to: readonly number[] | undefined, more: readonly number[]): number[] {
  return more.map((amount, n) => amount + (to?.[n] ?? 0));
}

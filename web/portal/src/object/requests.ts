// Quantities as Kubernetes writes them, and what a pod requests as the scheduler counts it.

import type { KubeObject } from '@kubecast/sdk';
import { formatNumber } from '../texts/format.ts';

const suffixes: Readonly<Record<string, number>> = {
  n: 1e-9, u: 1e-6, m: 1e-3, '': 1, k: 1e3, M: 1e6, G: 1e9, T: 1e12, P: 1e15, E: 1e18,
  Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40, Pi: 2 ** 50, Ei: 2 ** 60,
};

/** Zero for what is none. */
export function quantity(text: string | number | undefined): number {
  const match = /^([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)([a-zA-Z]*)$/.exec(String(text ?? ''));
  const factor = suffixes[match?.[2] ?? '?'];
  return match && factor !== undefined ? Number(match[1]) * factor : 0;
}

export type Amounts = Readonly<Record<string, number>>;

interface Container {
  readonly name?: string;
  readonly restartPolicy?: string;
  readonly resources?: { readonly requests?: Readonly<Record<string, string>>; readonly limits?: Readonly<Record<string, string>> };
}

interface RequestingPod extends KubeObject {
  readonly spec?: {
    readonly containers?: readonly Container[];
    readonly initContainers?: readonly Container[];
    readonly overhead?: Readonly<Record<string, string>>;
  };
  readonly status?: { readonly phase?: string };
}

const amounts = (of: Readonly<Record<string, string>> = {}): Amounts => Object.fromEntries(Object.entries(of).map(([name, value]) => [name, quantity(value)]));

const requested = ({ resources }: Container): Amounts => ({ ...amounts(resources?.limits), ...amounts(resources?.requests) });

function combine(a: Amounts, b: Amounts, how: (a: number, b: number) => number): Amounts {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]);
  return Object.fromEntries([...names].map((name) => [name, how(a[name] ?? 0, b[name] ?? 0)]));
}

export const sum = (a: Amounts, b: Amounts): Amounts => combine(a, b, (one, other) => one + other);

/** All containers together, or a container that runs before them with those that go on beside it, where that is more. */
export function requestsOf(pod: KubeObject): Amounts {
  const { spec = {}, status } = pod as RequestingPod;
  if (status?.phase === 'Succeeded' || status?.phase === 'Failed') return {};
  let most: Amounts = {};
  let beside: Amounts = {};
  for (const container of spec.initContainers ?? []) {
    const one = requested(container);
    if (container.restartPolicy === 'Always') beside = sum(beside, one);
    most = combine(most, container.restartPolicy === 'Always' ? beside : sum(beside, one), Math.max);
  }
  const all = (spec.containers ?? []).map(requested).reduce(sum, beside);
  return sum(combine(all, most, Math.max), amounts(spec.overhead));
}

/** How much memory a container of a pod may have, as it is written; undefined: no bound is set, or it is not known. */
export const memoryLimit = (spec: object | undefined, container: string): string | undefined => {
  const { containers = [], initContainers = [] } = (spec ?? {}) as NonNullable<RequestingPod['spec']>;
  return [...containers, ...initContainers].find(({ name }) => name === container)?.resources?.limits?.memory;
};

/** An amount for people: bytes in binary units, anything else as a number. */
export function formatAmount(name: string, amount: number): string {
  if (name !== 'memory' && name !== 'ephemeral-storage' && !name.startsWith('hugepages-')) return formatNumber(amount);
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB'];
  const power = amount < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(amount) / 10));
  return `${formatNumber(amount / 2 ** (10 * power))} ${units[power] ?? ''}`;
}

/** GPUs, whoever makes them, and parts of them. */
export const isGPU = (resource: string): boolean => /gpu|\bmig-/i.test(resource);

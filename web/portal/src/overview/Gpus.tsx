// Who has the GPUs: how many of all there are pods hold, by namespace and by node.

import { useCount } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { pods } from '../job/resources.ts';
import { quantity } from '../object/requests.ts';
import { isGPU } from '../queues/quota.ts';
import { formatNumber } from '../texts/format.ts';
import { formatView, linkToObject, parseView, type View } from '../view/view.ts';
import { t } from './texts.ts';
import { Line, Part, type OverviewNode } from './Wrong.tsx';

/** Pods that hold what they request. */
const holding = 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed';
/** So many containers of a pod are looked at: paths name the places of lists. */
const containers = [0, 1] as const;
/** Of pods that have these, not all that they hold may have been counted. */
const others: readonly string[] = ['spec.containers.2.name', 'spec.initContainers.0.name'];
const most = 6;
/** So many pairs are counted. */
const limit = 1_000;

/** What nodes have of each kind of GPU, the most first. */
export function gpusOf(nodes: readonly OverviewNode[]): readonly (readonly [string, number])[] {
  const all = new Map<string, number>();
  for (const { status } of nodes) {
    for (const [name, amount] of Object.entries(status?.allocatable ?? {})) if (isGPU(name) && quantity(amount) > 0) all.set(name, (all.get(name) ?? 0) + quantity(amount));
  }
  return [...all].sort(([, a], [, b]) => b - a);
}

interface Counted {
  readonly values: readonly string[];
  readonly count: number;
}

/** How much each holds, from how many pods request how much; the most first. */
export function heldBy(counts: readonly Counted[]): readonly (readonly [string, number])[] {
  const held = new Map<string, number>();
  for (const { values: [key = '', amount = ''], count } of counts) {
    const sum = (held.get(key) ?? 0) + quantity(amount) * count;
    if (sum > 0) held.set(key, sum);
  }
  return [...held].sort(([a, x], [b, y]) => y - x || a.localeCompare(b, undefined, { numeric: true }));
}

/** What is held, as far as it was told. */
export interface Holding {
  readonly status: 'loading' | 'denied' | 'known';
  /** There may be more: the caller sees a part of the pods, or not all of their containers were looked at. */
  readonly least: boolean;
}

interface Told {
  readonly data: readonly Counted[];
  readonly status: string;
  readonly namespaces: readonly string[] | undefined;
}

/** How much is known from all that was counted; `beyond`: the pods by what they have beside the containers that were looked at. */
export function holdingOf(counted: readonly Told[], beyond: Told): Holding {
  const all = [...counted, beyond];
  const is = (status: string): boolean => all.some((one) => one.status === status);
  const least = all.some(({ namespaces }) => namespaces !== undefined) || counted.some(({ data }) => data.length >= limit) || beyond.data.some(({ values }) => values.some((value) => value !== ''));
  return { status: is('denied') || is('closed') ? 'denied' : is('loading') ? 'loading' : 'known', least };
}

function useHeld(by: 'metadata.namespace' | 'spec.nodeName', resource: string, namespace: string): { readonly held: readonly (readonly [string, number])[]; readonly both: readonly Told[] } {
  const path = (n: number): string => `spec.containers.${n}.resources.requests.${resource.replaceAll('.', '\\.')}`;
  const paths = (n: number): readonly string[] => [by, path(n)];
  const query = (n: number) => ({ namespace, where: `${holding},${path(n)}!=`, limit, conflate: 1_000 });
  const first = useCount(pods, paths(containers[0]), query(containers[0]));
  const second = useCount(pods, paths(containers[1]), query(containers[1]));
  const held = useMemo(() => heldBy([...first.data, ...second.data]), [first.data, second.data]);
  return { held, both: [first, second] };
}

export function Gpus({ nodes, view }: { readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const [kind] = useMemo(() => gpusOf(nodes), [nodes]);
  return kind && <Held resource={kind[0]} total={kind[1]} nodes={nodes} view={view} />;
}

function Held({ resource, total, nodes, view }: { readonly resource: string; readonly total: number; readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const { namespace } = view;
  const teams = useHeld('metadata.namespace', resource, namespace);
  const onNodes = useHeld('spec.nodeName', resource, namespace);
  // Of the two most frequent pairs one is of pods that have some, if there are any.
  const beyond = useCount(pods, others, { namespace, where: holding, limit: 2, conflate: 1_000 });
  const has = useMemo(() => new Map(nodes.map(({ metadata, status }) => [metadata.name, quantity(status?.allocatable?.[resource])])), [nodes, resource]);
  const { status, least } = holdingOf([...teams.both, ...onNodes.both], beyond);
  if (status === 'denied') return null;
  if (status === 'loading') return <Part title={t.gpus} loading none="">{[]}</Part>;
  const used = teams.held.reduce((sum, [, amount]) => sum + amount, 0);
  const none = least ? t.gpusNoneSeen : t.gpusFree;
  return (
    <>
      <Part title={t.gpusUsed(used, total, namespace, least)} none={none}>
        {teams.held.slice(0, most).map(([team, amount]) => (
          <Line key={team} name={team} href={formatView({ ...parseView('#pods'), namespace: team })} count={formatNumber(amount)} />
        ))}
      </Part>
      <Part title={t.gpusByNode(namespace, least)} none={none}>
        {onNodes.held.slice(0, most).map(([node, amount]) => (
          <Line key={node} name={node} href={linkToObject('nodes', '', node, view)} count={t.ofAll(amount, has.get(node) ?? 0)} />
        ))}
      </Part>
    </>
  );
}

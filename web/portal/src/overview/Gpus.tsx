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

function useHeld(by: 'metadata.namespace' | 'spec.nodeName', resource: string): readonly (readonly [string, number])[] {
  const path = (n: number): string => `spec.containers.${n}.resources.requests.${resource.replaceAll('.', '\\.')}`;
  const paths = (n: number): readonly string[] => [by, path(n)];
  const where = (n: number): string => `${holding},${path(n)}!=`;
  const query = (n: number) => ({ where: where(n), limit, conflate: 1_000 });
  const first = useCount(pods, paths(containers[0]), query(containers[0]));
  const second = useCount(pods, paths(containers[1]), query(containers[1]));
  return useMemo(() => heldBy([...first.data, ...second.data]), [first.data, second.data]);
}

export function Gpus({ nodes, view }: { readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const [kind] = useMemo(() => gpusOf(nodes), [nodes]);
  return kind && <Held resource={kind[0]} total={kind[1]} nodes={nodes} view={view} />;
}

function Held({ resource, total, nodes, view }: { readonly resource: string; readonly total: number; readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const teams = useHeld('metadata.namespace', resource);
  const onNodes = useHeld('spec.nodeName', resource);
  const has = useMemo(() => new Map(nodes.map(({ metadata, status }) => [metadata.name, quantity(status?.allocatable?.[resource])])), [nodes, resource]);
  const used = teams.reduce((sum, [, amount]) => sum + amount, 0);
  return (
    <>
      <Part title={t.gpusUsed(used, total)} none={t.gpusFree}>
        {teams.slice(0, most).map(([team, amount]) => (
          <Line key={team} name={team} href={formatView({ ...parseView('#pods'), namespace: team })} count={formatNumber(amount)} />
        ))}
      </Part>
      <Part title={t.gpusByNode} none={t.gpusFree}>
        {onNodes.slice(0, most).map(([node, amount]) => (
          <Line key={node} name={node} href={linkToObject('nodes', '', node, view)} count={t.ofAll(amount, has.get(node) ?? 0)} />
        ))}
      </Part>
    </>
  );
}

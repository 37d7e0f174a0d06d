// Who has the GPUs: how many of all there are pods hold, by namespace and by node.

import { isFinal, type Status } from '@kubecast/sdk';
import { useCount } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { pods } from '../job/resources.ts';
import { isGPU, quantity } from '../object/requests.ts';
import { formatNumber } from '../texts/format.ts';
import { formatView, linkToObject, viewAt, type View } from '../view/view.ts';
import { t } from './texts.ts';
import { Line, Part, type OverviewNode } from './Wrong.tsx';

/** Pods that hold what they request. */
const holding = 'spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed';
const most = 6;
/** So many pairs are counted. */
const limit = 1_000;
/** So many kinds of GPUs are told of. */
const kinds = 4;

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
  /** There may be more: the caller sees a part of the pods, or there are more pairs than were counted. */
  readonly least: boolean;
}

interface Told {
  readonly data: readonly unknown[];
  readonly status: Status;
  readonly namespaces: readonly string[] | undefined;
}

/** How much is known from all that was counted. */
export function holdingOf(counted: readonly Told[]): Holding {
  const is = (status: string): boolean => counted.some((one) => one.status === status);
  const least = counted.some(({ namespaces, data }) => namespaces !== undefined || data.length >= limit);
  return { status: counted.some(isFinal) ? 'denied' : is('loading') ? 'loading' : 'known', least };
}

/** How much of it pods request as their scheduler counts, whatever containers it is for. */
function useHeld(by: 'metadata.namespace' | 'spec.nodeName', resource: string, namespace: string) {
  const path = `$requests.${resource.replaceAll('.', '\\.')}`;
  const paths: readonly string[] = [by, path];
  const told = useCount(pods, paths, { namespace, where: `${holding},${path}!=`, limit, conflate: 1_000 });
  const held = useMemo(() => heldBy(told.data), [told.data]);
  return { held, told };
}

export function Gpus({ nodes, view }: { readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const all = useMemo(() => gpusOf(nodes).slice(0, kinds), [nodes]);
  return all.map(([resource, total]) => <Held key={resource} resource={resource} named={all.length > 1 ? resource : t.gpus} total={total} nodes={nodes} view={view} />);
}

function Held({ resource, named, total, nodes, view }: { readonly resource: string; readonly named: string; readonly total: number; readonly nodes: readonly OverviewNode[]; readonly view: View }): ReactNode {
  const { namespace } = view;
  const teams = useHeld('metadata.namespace', resource, namespace);
  const onNodes = useHeld('spec.nodeName', resource, namespace);
  const has = useMemo(() => new Map(nodes.map(({ metadata, status }) => [metadata.name, quantity(status?.allocatable?.[resource])])), [nodes, resource]);
  const { status, least } = holdingOf([teams.told, onNodes.told]);
  if (status === 'denied') return null;
  if (status === 'loading') return <Part title={named} loading none="">{[]}</Part>;
  const used = teams.held.reduce((sum, [, amount]) => sum + amount, 0);
  const none = least ? t.gpusNoneSeen : t.gpusFree;
  return (
    <>
      <Part title={t.gpusUsed(named, used, total, namespace, least)} none={none}>
        {teams.held.slice(0, most).map(([team, amount]) => (
          <Line key={team} name={team} href={formatView({ ...viewAt('#pods', view), namespace: team })} count={formatNumber(amount)} />
        ))}
      </Part>
      <Part title={t.gpusByNode(named, namespace, least)} none={none}>
        {onNodes.held.slice(0, most).map(([node, amount]) => (
          <Line key={node} name={node} href={linkToObject('nodes', '', node, view)} count={t.ofAll(amount, has.get(node) ?? 0)} />
        ))}
      </Part>
    </>
  );
}

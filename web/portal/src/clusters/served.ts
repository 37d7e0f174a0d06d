// Which clusters the gateway serves, as far as the user may know of them. Where that is one, no page says anything of clusters.

import { answerTo, type Kubecast } from '@kubecast/sdk';
import { createContext, useContext, useMemo } from 'react';
import { Reading, useRead } from '../polling/polling.ts';
import type { View } from '../view/view.ts';

export interface Served {
  readonly name: string;
  readonly default: boolean;
  /** `live`, or why it is not. */
  readonly state: string;
}

/** Until they are looked for again, in milliseconds: several, of which one may go away; one, beside which another may be configured. */
const [ofSeveral, ofOne] = [30_000, 300_000];

const readings = new WeakMap<Kubecast, Reading<readonly Served[]>>();

/** None until they are known. */
export function useServedBy(kc: Kubecast): readonly Served[] {
  const reading = readings.get(kc) ?? new Reading(() => clustersOf(kc), 10_000, (all) => (all.length > 1 ? ofSeveral : ofOne));
  readings.set(kc, reading);
  const key = JSON.stringify(useRead(reading).data ?? []);
  return useMemo(() => JSON.parse(key) as readonly Served[], [key]);
}

async function clustersOf(kc: Kubecast): Promise<readonly Served[]> {
  const { clusters } = (await answerTo(kc, '/clusters')) as { readonly clusters: readonly Served[] };
  return clusters.map(({ name, default: first, state }) => ({ name, default: first, state }));
}

/** What was found, for all of the page. */
export const ServedClusters = createContext<readonly Served[]>([]);

export const useServed = (): readonly Served[] => useContext(ServedClusters);

/** The same page of the cluster with this name. */
export const viewIn = (served: readonly Served[], view: View, name = ''): View =>
  served.length < 2 ? view : { ...view, cluster: served.some((one) => one.default && one.name === name) ? '' : name };

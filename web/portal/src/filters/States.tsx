// A chip for each state in which objects of a kind are, as the gateway counts them, however many there are.

import type { KubeObject, Resource } from '@kubecast/sdk';
import { useCount } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { StateFilter } from './StateFilter.tsx';
import { statusPath } from './status.ts';

interface StatesProps {
  readonly resource: Resource<KubeObject>;
  readonly namespace: string;
  readonly search: string;
  readonly selected: string;
  /** Where what they are told apart by stands; what they are doing, if it is left out. */
  readonly by?: string;
}

/** So many states have chips, the most frequent. */
const most = 20;

export function States({ resource, namespace, search, selected, by = statusPath }: StatesProps): ReactNode {
  const { data, status } = useCount(resource, [by], { namespace, search, limit: most, conflate: 1_000 });
  const counts = useMemo(() => new Map(data.map(({ value, count }) => [value, count])), [data]);
  // A kind of which no object says what it is doing has nothing to choose from.
  if (selected === '' && data.every(({ value }) => value === '')) return null;
  return <StateFilter counts={counts} total={data.reduce((sum, { count }) => sum + count, 0)} selected={selected} loading={status === 'loading'} />;
}

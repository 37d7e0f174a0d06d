// A chip for each state in which objects of a kind are, as the gateway counts them, however many there are.

import { isFinal, type KubeObject, type Resource } from '@kubecast/sdk';
import { useCount } from '@kubecast/sdk/react';
import { useMemo, type ReactNode } from 'react';
import { StateFilter } from './StateFilter.tsx';
import { statusPath } from './status.ts';

interface StatesProps {
  readonly resource: Resource<KubeObject>;
  readonly namespace: string;
  readonly search: string;
  readonly selected: string;
  /** How many there are of what is selected, of everything if nothing is; undefined: it is not known yet. */
  readonly found: number | undefined;
  /** Where what they are told apart by stands; what they are doing, if it is left out. */
  readonly by?: string;
}

/** So many states are counted, the most frequent. */
const most = 500;

export function States({ resource, namespace, search, selected, found, by = statusPath }: StatesProps): ReactNode {
  const { data, status } = useCount(resource, [by], { namespace, search, limit: most, conflate: 1_000 });
  // Of more than are counted there may be any number; of what is selected the table knows.
  const whole = status !== 'loading' && !isFinal({ status }) && data.length < most;
  const counts = useMemo(() => {
    const all = new Map(data.map(({ value, count }) => [value, count]));
    if (selected !== '' && !all.has(selected) && (whole || found !== undefined)) all.set(selected, whole ? 0 : (found ?? 0));
    return all;
  }, [data, selected, whole, found]);
  // A kind of which no object says what it is doing has nothing to choose from.
  if (selected === '' && data.every(({ value }) => value === '')) return null;
  return <StateFilter counts={counts} total={whole ? data.reduce((sum, { count }) => sum + count, 0) : selected === '' ? found : undefined} selected={selected} loading={status === 'loading'} />;
}

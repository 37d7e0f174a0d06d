// Where jobs wait, for tables whose rows are the cluster's objects: read now and then from the history, by uid.

import { pastJobs, type QueuePlace } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { createContext, useContext, useMemo, type ReactNode } from 'react';
import { jobs } from '../job/resources.ts';
import { useHasQueues } from '../pages/shown.ts';
import { useReading } from '../polling/polling.ts';
import { PlaceHint } from './Starts.tsx';

type Places = ReadonlyMap<string, QueuePlace>;

const none: Places = new Map();
const Known = createContext(none);

/** In milliseconds. */
const again = 10_000;
/** So many of the jobs that wait are asked for. */
const most = 500;

/** Below it tables know the places of jobs in a namespace. Where there are no queues nothing is asked. */
export function WithPlaces({ namespace, children }: { readonly namespace: string; readonly children: ReactNode }): ReactNode {
  const kc = useKubecast();
  const there = useHasQueues();
  const read = useMemo(
    () => async (): Promise<Places> => {
      if (!there) return none;
      const { items } = await pastJobs(kc, jobs, { namespace, states: ['Queued'], limit: most });
      return new Map(items.flatMap(({ uid, place }) => (place ? [[uid, place] as const] : [])));
    },
    [kc, there, namespace],
  );
  const { data = none } = useReading(read, undefined, 1_000, untilAgain);
  return <Known value={data}>{children}</Known>;
}

const untilAgain = (): number => again;

/** Beside the state of a job that waits. */
export function PlaceOf({ uid }: { readonly uid: string }): ReactNode {
  const place = useContext(Known).get(uid);
  return place ? <PlaceHint place={place} short /> : null;
}

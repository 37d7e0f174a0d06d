// Whether the history has an object of whatever kind, and what: kinds that are recorded are known by asking.

import { AskedError, pastJobs, type Kubecast, type PastJob } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo } from 'react';
import { untilReadAgain } from '../job/Kept.tsx';
import type { Kind } from '../kinds/discovery.ts';
import { useReading } from '../polling/polling.ts';

/** The kinds of which the gateway has said that no history of them is kept. */
const unrecorded = new WeakMap<Kubecast, Set<string>>();

async function read(kc: Kubecast, kind: Kind, namespace: string, name: string, uid: string | undefined): Promise<PastJob | undefined> {
  const none = unrecorded.get(kc) ?? new Set<string>();
  unrecorded.set(kc, none);
  // Neither what has no namespace nor the core group has jobs.
  if (!kind.namespaced || kind.group === '' || none.has(kind.id)) return undefined;
  try {
    return (await pastJobs(kc, kind, { namespace, name, uid, limit: 1 })).items[0];
  } catch (error) {
    if (!(error instanceof AskedError && error.status === 404)) throw error;
    none.add(kind.id);
    return undefined;
  }
}

/** The object with this uid, or without one the newest that had the name, as the history has it; it is read again with each other `signal`. */
export function useRecorded(kind: Kind, namespace: string, name: string, uid: string | undefined, signal: unknown): PastJob | undefined {
  const kc = useKubecast();
  const ask = useMemo(() => () => read(kc, kind, namespace, name, uid), [kc, kind, namespace, name, uid]);
  return useReading(ask, signal, 1_000, untilReadAgain).data;
}

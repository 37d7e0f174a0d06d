import { answerTo, AskedError, type Kubecast } from '@kubecast/sdk';
import { createContext, useContext } from 'react';
import { Reading, useRead } from '../polling/polling.ts';
import type { PageName } from '../view/view.ts';

const all: readonly PageName[] = ['mine', 'overview', 'jobs', 'pods', 'queues', 'history', 'kinds'];
const withoutQueues = all.filter((page) => page !== 'queues');

/** Queues come and go with what is installed: it is looked for them again after so long, in milliseconds. */
const again = 300_000;

const readings = new WeakMap<Kubecast, Reading<boolean>>();

/** Looks for a queue that the user may see. Until it is known, there is none. */
export function useQueuesSought(kc: Kubecast): boolean {
  const reading = readings.get(kc) ?? new Reading(() => hasQueues(kc), 10_000, () => again);
  readings.set(kc, reading);
  return useRead(reading).data ?? false;
}

/** What was found, for all of the page. */
export const HasQueues = createContext(false);

export const useHasQueues = (): boolean => useContext(HasQueues);

async function hasQueues(kc: Kubecast): Promise<boolean> {
  try {
    const { items = [] } = (await answerTo(kc, '/queues')) as { readonly items?: readonly unknown[] };
    return items.length > 0;
  } catch (error) {
    if (error instanceof AskedError && error.status === 404) return false; // a gateway that knows of none
    throw error;
  }
}

/** Those that the header leads to. */
export const shownPages = (queues: boolean): readonly PageName[] => (queues ? all : withoutQueues);

// Why a job ended may be found out after its notification came, which is not told again: a page of notifications says what is known by now.

import { answerTo, type Cause, type JobNotification, type Kubecast, type Transition } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useMemo } from 'react';
import { useReading } from '../polling/polling.ts';
import { mayBeExplained, untilExplained } from '../state/why.ts';

/** What a page says of a notification, of what may change. */
interface Explained {
  readonly title: string;
  readonly transition: Pick<Transition, 'reason' | 'message'> & { readonly cause: Cause | null } | null;
}

type Known = ReadonlyMap<string, Explained>;

/** Whether a page may know more of why it ended. However long ago that was: what was told stays as it was told. */
const isVague = ({ transition }: JobNotification): boolean => (transition?.to === 'Failed' || transition?.to === 'Cancelled') && !transition.cause?.pod;

/** The notifications with why the jobs ended, as far as that is known by now. It is asked for again while something may be found out. */
export function useExplained(items: readonly JobNotification[]): readonly JobNotification[] {
  const kc = useKubecast();
  const vague = items.filter(isVague).map(({ id }) => id).join();
  const read = useMemo(() => () => (vague === '' ? Promise.resolve<Known>(new Map()) : known(kc)), [kc, vague]);
  const idle = useMemo(() => (by: Known) => (items.some((item) => mayChange(explained(item, by.get(item.id)))) ? untilExplained : undefined), [items]);
  const { data } = useReading(read, undefined, undefined, idle);
  return useMemo(() => items.map((item) => (isVague(item) ? explained(item, data?.get(item.id)) : item)), [items, data]);
}

const mayChange = ({ transition }: JobNotification): boolean => transition !== undefined && mayBeExplained({ state: transition.to, cause: transition.cause, since: transition.at });

async function known(kc: Kubecast): Promise<Known> {
  const { items } = (await answerTo(kc, '/notifications?limit=200')) as { readonly items: readonly (Explained & { readonly id: string })[] };
  return new Map(items.map((item) => [item.id, item]));
}

function explained(item: JobNotification, now: Explained | undefined): JobNotification {
  if (!now?.transition || !item.transition) return item;
  const { reason, message, cause } = now.transition;
  return { ...item, title: now.title, transition: { ...item.transition, reason, message, cause: cause ?? undefined } };
}

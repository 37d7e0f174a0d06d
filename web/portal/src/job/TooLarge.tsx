// What a job waits for that no node has, however free it is. That there is too little free does not say so.

import { defineResource, isFinal, type KubeObject, type PastJob } from '@kubecast/sdk';
import { useCount } from '@kubecast/sdk/react';
import type { ReactNode } from 'react';
import { formatAmount, quantity, requestsOf } from '../object/requests.ts';
import { t } from './texts.ts';

const nodes = defineResource<KubeObject>()({ version: 'v1', plural: 'nodes' });
/** So many different amounts are counted. */
const limit = 1_000;
const waiting = new Set(['Submitted', 'Queued', 'Pending', 'Retrying']);

/** Nothing where a pod of it fits, and where that is not known. Nodes are asked only for what it is said to wait for. */
export function TooLarge({ past: { state, message }, job }: { readonly past: PastJob; readonly job: KubeObject | undefined }): ReactNode {
  const { template } = (job as { readonly spec?: { readonly template?: KubeObject } } | undefined)?.spec ?? {};
  if (!template || !waiting.has(state)) return null;
  const asked = Object.entries(requestsOf(template)).filter(([resource]) => message.includes(resource));
  return asked.map(([resource, amount]) => <Largest key={resource} resource={resource} amount={amount} />);
}

function Largest({ resource, amount }: { readonly resource: string; readonly amount: number }): ReactNode {
  const paths: readonly string[] = [`status.allocatable.${resource.replaceAll('.', '\\.')}`];
  const { data, status, namespaces } = useCount(nodes, paths, { limit });
  // A larger one may be among those that are not seen.
  if (isFinal({ status }) || namespaces !== undefined || data.length === 0 || data.length >= limit) return null;
  const largest = Math.max(...data.map(({ value }) => quantity(value)));
  return amount > largest && <p className="job-why-more">{t.tooLarge(resource, formatAmount(resource, amount), formatAmount(resource, largest))}</p>;
}

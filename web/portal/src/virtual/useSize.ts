// How many objects a table would have, asked before it is known how to show it.

import type { Kubecast } from '@kubecast/sdk';
import { useEffect, useState } from 'react';
import { begun } from '../early/begun.ts';
import type { TableName } from '../view/view.ts';

/** Of more than so many, only those in sight are asked for, and the gateway sorts and searches; of fewer the page has all. */
export const mostInFull = 2_000;

/** What was said, and whom. */
interface Found {
  readonly kc: Kubecast;
  readonly known: ReadonlyMap<string, boolean>;
}

/**
 * Whether there are more than {@link mostInFull}; undefined: nobody knows yet. It is asked whenever another table or namespace is gone to, and not again while one
 * stays there: a table that changed its ways under the reader would be worse than one that is somewhat slow. Until the answer, what was said before counts.
 */
export function useLarge(kc: Kubecast | undefined, table: TableName | undefined, namespace: string): boolean | undefined {
  const [found, setFound] = useState<Found>();
  useEffect(() => {
    if (!table || !kc) return undefined;
    let here = true;
    const scope = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    const path = `${table === 'jobs' ? '/apis/batch/v1/' : '/api/v1/'}${scope}${table}?limit=1&fields=metadata.name`;
    const answer = (large: boolean): void => {
      if (here) setFound((before) => ({ kc, known: new Map(before?.kc === kc ? before.known : []).set(`${table} ${namespace}`, large) }));
    };
    sizeAt(kc, path).then(
      (size) => answer(size > mostInFull),
      () => answer(false), // then the stream says what is wrong
    );
    return () => {
      here = false;
    };
  }, [kc, table, namespace]);
  if (!table || !found || found.kc !== kc) return undefined;
  const { known } = found;
  // A part of what is not large is not.
  return known.get(`${table} ${namespace}`) ?? (known.get(`${table} `) === false ? false : undefined);
}

async function sizeAt(kc: Kubecast, path: string): Promise<number> {
  const early = await begun(path);
  const list = (await (early?.ok ? early.json() : kc.request(path, {}, (response) => response.json()))) as { items?: unknown[]; metadata?: { remainingItemCount?: number } };
  return (list.items?.length ?? 0) + (list.metadata?.remainingItemCount ?? 0);
}

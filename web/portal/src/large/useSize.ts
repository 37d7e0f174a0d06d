// How many objects a table would have, asked before it is known how to show it.

import type { Kubecast } from '@kubecast/sdk';
import { useEffect, useState } from 'react';
import type { TableName } from '../feed/kinds.ts';

/** Of more than so many, only those in sight are asked for, and the gateway sorts and searches; of fewer the page has all. */
export const mostInFull = 2_000;

/**
 * Whether there are more than {@link mostInFull}; undefined: nobody knows yet. It is asked once for each table and namespace: a table that changed its
 * ways under the reader would be worse than one that is somewhat slow.
 */
export function useLarge(kc: Kubecast, table: TableName | undefined, namespace: string): boolean | undefined {
  const key = table && `${table} ${namespace}`;
  const [known, setKnown] = useState<{ readonly key: string; readonly large: boolean }>();
  useEffect(() => {
    if (!table || key === undefined) return undefined;
    let here = true;
    const scope = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    const path = `${table === 'jobs' ? '/apis/batch/v1/' : '/api/v1/'}${scope}${table}?limit=1&fields=metadata.name`;
    sizeAt(kc, path).then(
      (size) => here && setKnown({ key, large: size > mostInFull }),
      () => here && setKnown({ key, large: false }), // then the stream says what is wrong
    );
    return () => {
      here = false;
    };
  }, [kc, table, namespace, key]);
  return known?.key === key ? known?.large : undefined;
}

async function sizeAt(kc: Kubecast, path: string): Promise<number> {
  const list = (await kc.request(path, {}, (response) => response.json())) as { items?: unknown[]; metadata?: { remainingItemCount?: number } };
  return (list.items?.length ?? 0) + (list.metadata?.remainingItemCount ?? 0);
}

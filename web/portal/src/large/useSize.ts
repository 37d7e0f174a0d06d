// How many objects a table would have, asked before it is known how to show it.

import type { Kubecast } from '@kubecast/sdk';
import { useEffect, useState } from 'react';
import type { TableName } from '../view/view.ts';

/** Of more than so many, only those in sight are asked for, and the gateway sorts and searches; of fewer the page has all. */
export const mostInFull = 2_000;

/**
 * Whether there are more than {@link mostInFull}; undefined: nobody knows yet. It is asked once for each table and namespace: a table that changed its
 * ways under the reader would be worse than one that is somewhat slow.
 */
export function useLarge(kc: Kubecast, table: TableName | undefined, namespace: string): boolean | undefined {
  const [known, setKnown] = useState<{ readonly table: TableName; readonly namespace: string; readonly large: boolean }>();
  const answered = known !== undefined && known.table === table && known.namespace === namespace;
  useEffect(() => {
    if (!table || answered) return undefined;
    let here = true;
    const scope = namespace === '' ? '' : `namespaces/${encodeURIComponent(namespace)}/`;
    const path = `${table === 'jobs' ? '/apis/batch/v1/' : '/api/v1/'}${scope}${table}?limit=1&fields=metadata.name`;
    sizeAt(kc, path).then(
      (size) => here && setKnown({ table, namespace, large: size > mostInFull }),
      () => here && setKnown({ table, namespace, large: false }), // then the stream says what is wrong
    );
    return () => {
      here = false;
    };
  }, [kc, table, namespace, answered]);
  if (!known || known.table !== table) return undefined;
  if (answered) return known.large;
  // Meanwhile what is large looks so, and a part of what is not large is not.
  return known.large || (known.namespace === '' ? false : undefined);
}

async function sizeAt(kc: Kubecast, path: string): Promise<number> {
  const list = (await kc.request(path, {}, (response) => response.json())) as { items?: unknown[]; metadata?: { remainingItemCount?: number } };
  return (list.items?.length ?? 0) + (list.metadata?.remainingItemCount ?? 0);
}

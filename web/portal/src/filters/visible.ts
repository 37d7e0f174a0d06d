// The namespaces in which the user may see something.

import type { Kubecast } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useEffect } from 'react';

/** As a watch on all namespaces told last. */
const known = new WeakMap<Kubecast, readonly string[]>();

/**
 * The namespaces that the user may see something in; undefined: no restriction is known. A watch on all of them tells, and what it told
 * is remembered while only one is watched, or the next watch has told nothing yet.
 */
export function useVisible(namespace: string, { namespaces, status }: { readonly namespaces: readonly string[] | undefined; readonly status: string }): readonly string[] | undefined {
  const kc = useKubecast();
  const told = namespace === '' && (namespaces !== undefined || status === 'live');
  useEffect(() => {
    if (!told) return;
    if (namespaces) known.set(kc, namespaces);
    else known.delete(kc);
  }, [kc, told, namespaces]);
  return told ? namespaces : known.get(kc);
}

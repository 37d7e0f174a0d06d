import { useEffect, type ReactNode } from 'react';
import { Wait } from '../pages/page.tsx';
import { inCluster } from './inCluster.ts';

/** Stands in place of a page of another cluster than the default one until it is there how to ask for it: most gateways serve one, and need none of that. */
export function Scoped({ onReady }: { readonly onReady: (how: typeof inCluster) => void }): ReactNode {
  useEffect(() => onReady(inCluster), [onReady]);
  return <Wait />;
}

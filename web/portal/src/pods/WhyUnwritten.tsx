// Why a log has nothing, in the page's language, and in the cluster's words beside it.

import type { ReactNode } from 'react';
import type { Unwritten } from './unwritten.ts';

export function WhyUnwritten({ of: { text, why } }: { readonly of: Unwritten }): ReactNode {
  return (
    <>
      {text}
      {why && <span translate="no"> {why}</span>}
    </>
  );
}

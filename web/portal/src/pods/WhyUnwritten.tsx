// Why a log has nothing, in the page's language, and in the cluster's words for whoever asks for them: the page tells them already.

import type { ReactNode } from 'react';
import { InItsWords } from '../state/InItsWords.tsx';
import type { Unwritten } from './unwritten.ts';

export function WhyUnwritten({ of: { text, why } }: { readonly of: Unwritten }): ReactNode {
  return (
    <>
      <p>{text}</p>
      {why && <InItsWords text={why} />}
    </>
  );
}

// What the cluster said, word for word, folded: it stands beside a sentence that says the same.

import type { ReactNode } from 'react';
import { t } from './inItsWords.ts';
import './state.css';

export function InItsWords({ text }: { readonly text: string }): ReactNode {
  return (
    <details className="in-its-words">
      <summary>{t.inItsWords}</summary>
      <span translate="no">{text}</span>
    </details>
  );
}

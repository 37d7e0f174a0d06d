import type { ReactNode } from 'react';
import { useCopied } from '../clipboard/useCopied.ts';
import { t } from './texts.ts';

/** Copies a text; nothing where the browser cannot. */
export function CopyButton({ text }: { text: string }): ReactNode {
  const [copied, copy] = useCopied();
  if (!('clipboard' in navigator)) return null;
  return (
    <button type="button" className="button button-small" onClick={() => copy(text)}>
      {copied ? t.copied : t.copy}
    </button>
  );
}

/** A command to take along. */
export function Copied({ text }: { text: string }): ReactNode {
  return (
    <span className="copied">
      <code translate="no">{text}</code>
      <CopyButton text={text} />
    </span>
  );
}

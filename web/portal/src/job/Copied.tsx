import { useEffect, useState, type ReactNode } from 'react';
import { t } from './texts.ts';

/** Copies a text; nothing where the browser cannot. */
export function CopyButton({ text }: { text: string }): ReactNode {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (): void => {
    navigator.clipboard.writeText(text).then(
      () => setCopied(true),
      () => undefined, // it can still be selected
    );
  };
  // Browsers offer it only to pages that came by TLS, or from this machine.
  if (!('clipboard' in navigator)) return null;
  return (
    <button type="button" className="button button-small" onClick={copy}>
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

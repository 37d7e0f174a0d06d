import { useEffect, useState, type ReactNode } from 'react';

/** A command to take along. */
export function Copied({ text }: { text: string }): ReactNode {
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
  return (
    <span className="copied">
      <code>{text}</code>
      {/* Browsers offer it only to pages that came by TLS, or from this machine. */}
      {'clipboard' in navigator && (
        <button type="button" className="button button-small" onClick={copy}>
          {copied ? 'Copied' : 'Copy'}
        </button>
      )}
    </span>
  );
}

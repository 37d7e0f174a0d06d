import { useEffect, useState } from 'react';

/** Whether a text was copied just now, and what copies one. Browsers offer it only to pages that came by TLS, or from this machine. */
export function useCopied(): readonly [copied: boolean, copy: (text: string) => void] {
  const [copied, setCopied] = useState(false);
  useEffect(() => {
    if (!copied) return undefined;
    const timer = setTimeout(() => setCopied(false), 2_000);
    return () => clearTimeout(timer);
  }, [copied]);
  const copy = (text: string): void => {
    navigator.clipboard?.writeText(text).then(
      () => setCopied(true),
      () => undefined, // it can still be selected
    );
  };
  return [copied, copy];
}

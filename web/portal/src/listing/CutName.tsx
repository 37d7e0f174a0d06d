import type { ReactNode } from 'react';
import './listing.css';

/** How much of its end always stays: names of pods, and of jobs that something else makes, differ there. */
const kept = 9;

/** A name that is cut in the middle where it does not fit; whole when pointed at, and when copied. */
export function CutName({ text }: { text: string }): ReactNode {
  const at = text.length > 2 * kept ? text.length - kept : text.length;
  return (
    <span className="cut-name" title={text} translate="no">
      <span>{text.slice(0, at)}</span>
      {at < text.length && <span>{text.slice(at)}</span>}
    </span>
  );
}

import type { ReactNode } from 'react';
import './listing.css';

/** How much of its end always stays, at most: names of pods, of nodes, and of jobs that something else makes, differ there. */
const most = 9;
/** What is shorter fits, or has no middle worth cutting. */
const short = 8;

/** A name that is cut in the middle where it does not fit; whole when pointed at, found, copied or read out. */
export function CutName({ text }: { text: string }): ReactNode {
  if (text.length <= short) return <span translate="no">{text}</span>;
  const at = text.length - Math.min(most, Math.floor(text.length / 3));
  // What is copied or read out is the first part alone, which has all of the name: two parts would be two lines, and two words.
  return (
    <span className="cut-name" title={text} translate="no">
      <span>
        {text.slice(0, at)}
        <span className="cut-rest">{text.slice(at)}</span>
      </span>
      <span aria-hidden="true">{text.slice(at)}</span>
    </span>
  );
}

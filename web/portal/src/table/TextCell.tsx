import type { ReactNode } from 'react';

/** Text that may be cut short on screen, and is then whole when pointed at. */
export function TextCell({ text, strong = false }: { text: string; strong?: boolean }): ReactNode {
  if (text === '') return <span className="none">–</span>;
  return (
    <span className={strong ? 'cell-name' : undefined} translate="no" title={text}>
      {text}
    </span>
  );
}

import type { ReactNode } from 'react';

/** So much of a name's end is always there: of names that were generated, it is the only part that differs. */
const end = 8;

/** Text that may be cut short on screen, and is then whole when pointed at. Names are cut in the middle. */
export function TextCell({ text, strong = false }: { text: string; strong?: boolean }): ReactNode {
  if (text === '') return <span className="none">–</span>;
  if (!strong || text.length < 3 * end) {
    return (
      <span className={strong ? 'cell-name' : undefined} translate="no" title={text}>
        {text}
      </span>
    );
  }
  return (
    <span className="cell-name cut" translate="no" title={text}>
      <span>{text.slice(0, -end)}</span>
      <span>{text.slice(-end)}</span>
    </span>
  );
}

// Several containers' logs side by side, each with what became of the container.

import type { LogEntry } from '@kubecast/sdk';
import { useMemo, type ReactNode } from 'react';
import { becameOf, entriesOf } from './entries.ts';
import { atLeast, type Level } from './levels.ts';
import { Lines, type LinesProps } from './Lines.tsx';
import { indexOf, rowsOf } from './rows.ts';
import type { Piece } from './stretches.ts';
import { t } from './texts.ts';

interface ColumnProps extends Omit<LinesProps, 'rows' | 'named' | 'label'> {
  readonly source: string;
  readonly pieces: readonly Piece[];
  readonly all: readonly LogEntry[];
  readonly level: Level | '';
}

/** One for each container, as `sourcesOf` names it. */
export function Columns({ sources, ...rest }: Omit<ColumnProps, 'source'> & { readonly sources: readonly string[] }): ReactNode {
  return (
    <div className="log-columns">
      {sources.map((source) => (
        <Column key={source} source={source} {...rest} />
      ))}
    </div>
  );
}

function Column({ source, pieces, all, level, goTo, ...lines }: ColumnProps): ReactNode {
  const rows = useMemo(() => rowsOf(pieces, (entries) => atLeast(entriesOf(entries, source), level)), [pieces, source, level]);
  const became = useMemo(() => becameOf(all, source), [all, source]);
  const has = goTo && rows.at(indexOf(rows, goTo.id))?.id === goTo.id;
  return (
    <section className="log-column" aria-label={source}>
      <h2 className="log-column-head">
        <span translate="no">{source}</span> {became && <span className={became.failed ? 'log-failed' : 'log-ended'}>{became.words}</span>}
      </h2>
      <Lines rows={rows} named={undefined} label={t.logOf(source)} goTo={has ? goTo : undefined} {...lines} />
    </section>
  );
}

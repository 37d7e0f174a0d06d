import type { ReactNode } from 'react';
import { StateIcon } from '../state/StateMark.tsx';
import { setView } from '../view/view.ts';
import { stateName } from '../state/texts.ts';
import { formatNumber } from '../texts/format.ts';
import { t } from './texts.ts';
import './filters.css';

interface StateFilterProps {
  readonly states: readonly string[];
  /** Undefined: nobody has counted them. */
  readonly counts?: ReadonlyMap<string, number> | undefined;
  readonly total?: number | undefined;
  /** Empty: all. */
  readonly selected: string;
  readonly loading: boolean;
}

/** How many there are in each state, and at a click only those. */
export function StateFilter({ states, counts, total, selected, loading }: StateFilterProps): ReactNode {
  return (
    <div className="state-filter" role="group" aria-label={t.byState} data-loading={loading || undefined}>
      <Chip label={t.all} count={total} pressed={selected === ''} onClick={() => setView({ state: '' })} />
      {states
        .filter((state) => state === selected || !counts || counts.has(state))
        .map((state) => (
          <Chip
            key={state}
            label={stateName(state)}
            count={counts && (counts.get(state) ?? 0)}
            icon={<StateIcon state={state} />}
            pressed={state === selected}
            onClick={() => setView({ state: state === selected ? '' : state })}
          />
        ))}
    </div>
  );
}

interface ChipProps {
  readonly label: string;
  readonly count: number | undefined;
  readonly pressed: boolean;
  readonly onClick: () => void;
  readonly icon?: ReactNode;
}

function Chip({ label, count, pressed, onClick, icon }: ChipProps): ReactNode {
  return (
    <button type="button" className="chip" aria-pressed={pressed} onClick={onClick}>
      {icon}
      {label} {count !== undefined && <span className="chip-count">{formatNumber(count)}</span>}
    </button>
  );
}

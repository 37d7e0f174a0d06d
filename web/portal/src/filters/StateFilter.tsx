import type { ReactNode } from 'react';
import { StateIcon } from '../state/StateMark.tsx';
import { urgency } from '../state/tone.ts';
import { setView } from '../view/view.ts';
import { isNamed, stateName } from '../state/texts.ts';
import { formatNumber } from '../texts/format.ts';
import { t } from './texts.ts';
import './filters.css';

/** So many states have chips, if nobody lists them; and so much of a stranger's word is shown. */
const most = 20;
const longest = 60;

interface StateFilterProps {
  /** In their order; undefined: those that were counted, what needs somebody first. */
  readonly states?: readonly string[] | undefined;
  /** Undefined: nobody has counted them. */
  readonly counts?: ReadonlyMap<string, number> | undefined;
  readonly total?: number | undefined;
  /** Empty: all. */
  readonly selected: string;
  readonly loading: boolean;
}

/** How many there are in each state, and at a click only those. */
export function StateFilter({ states, counts, total, selected, loading }: StateFilterProps): ReactNode {
  // None so far is not none.
  const none = loading ? undefined : 0;
  return (
    <div className="state-filter" role="group" aria-label={t.byState} data-loading={loading || undefined}>
      <Chip label={t.all} count={total === 0 ? none : total} pressed={selected === ''} onClick={() => setView({ state: '' })} />
      {(states ?? byUrgency(counts, selected))
        .filter((state) => state === selected || !counts || counts.has(state))
        .map((state) => (
          <Chip
            key={state}
            label={stateName(state)}
            foreign={!isNamed(state)}
            count={counts?.get(state) ?? (states && counts ? none : undefined)}
            icon={<StateIcon state={state} />}
            pressed={state === selected}
            onClick={() => setView({ state: state === selected ? '' : state })}
          />
        ))}
    </div>
  );
}

/** Of the same urgency the most frequent first; what has no state has no chip, and of very many only the first have one. */
function byUrgency(counts: ReadonlyMap<string, number> = new Map(), selected: string): readonly string[] {
  const states = [...new Set([...counts.keys(), selected])].filter((state) => state !== '');
  const count = (state: string): number => counts.get(state) ?? 0;
  return states.sort((a, b) => urgency(a) - urgency(b) || count(b) - count(a) || a.localeCompare(b)).filter((state, n) => n < most || state === selected);
}

interface ChipProps {
  readonly label: string;
  /** The label is the cluster's. */
  readonly foreign?: boolean;
  readonly count: number | undefined;
  readonly pressed: boolean;
  readonly onClick: () => void;
  readonly icon?: ReactNode;
}

function Chip({ label, foreign, count, pressed, onClick, icon }: ChipProps): ReactNode {
  return (
    <button type="button" className="chip" aria-pressed={pressed} onClick={onClick}>
      {icon}
      {foreign ? <span className="chip-label" translate="no">{label.length > longest ? `${label.slice(0, longest)}…` : label}</span> : label} {count !== undefined && <span className="chip-count">{formatNumber(count)}</span>}
    </button>
  );
}

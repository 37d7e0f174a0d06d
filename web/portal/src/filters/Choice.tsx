import type { ReactNode } from 'react';

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  /** The value of each, and its words; those that are the cluster's have no translation. */
  readonly options: readonly (readonly [string, string, 'foreign'?])[];
  readonly onChoose: (value: string) => void;
}

export function Choice({ label, value, options, onChoose }: ChoiceProps): ReactNode {
  return (
    <select className="field" aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([one, words, foreign]) => (
        <option key={one} value={one} translate={foreign && 'no'}>
          {words}
        </option>
      ))}
    </select>
  );
}

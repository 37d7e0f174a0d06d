import type { ReactNode } from 'react';

interface ChoiceProps {
  readonly label: string;
  readonly value: string;
  readonly options: readonly (readonly [string, string])[];
  readonly onChoose: (value: string) => void;
}

export function Choice({ label, value, options, onChoose }: ChoiceProps): ReactNode {
  return (
    <select className="field" aria-label={label} value={value} onChange={(event) => onChoose(event.currentTarget.value)}>
      {options.map(([one, words]) => (
        <option key={one} value={one}>
          {words}
        </option>
      ))}
    </select>
  );
}

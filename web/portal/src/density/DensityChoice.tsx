import { useId, type ReactNode } from 'react';
import { chooseDensity, densities, useDensity } from './density.ts';
import { t } from './texts.ts';
import './density.css';

export function DensityChoice(): ReactNode {
  const density = useDensity();
  const name = useId();
  return (
    <fieldset className="density">
      <legend>{t.rows}</legend>
      {densities.map((one) => (
        <label key={one}>
          <input type="radio" name={name} checked={one === density} onChange={() => chooseDensity(one)} />
          {t[one]}
        </label>
      ))}
    </fieldset>
  );
}

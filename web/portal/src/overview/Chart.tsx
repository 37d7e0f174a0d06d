// Small charts of steps of time. Each has its numbers beside it as a table, for whoever cannot see it or wants to know exactly.

import type { ReactNode } from 'react';
import { formatDate, formatMinute, formatNumber, formatWeekday } from '../texts/format.ts';
import { t } from './texts.ts';

export interface Series {
  readonly name: string;
  /** Names its colour and its shape. */
  readonly tone: 'done' | 'failed' | 'cancelled' | 'half' | 'most';
  /** A number for each step; undefined: there is none. */
  readonly values: readonly (number | undefined)[];
}

interface ChartProps {
  readonly title: string;
  /** What it says, in a sentence. */
  readonly summary?: ReactNode;
  /** Where the steps begin, in milliseconds since the epoch. */
  readonly steps: readonly number[];
  readonly series: readonly Series[];
  /** Bars that stand on each other, or lines. */
  readonly as: 'bars' | 'lines';
  readonly format?: (value: number) => string;
  /** Its numbers are not there yet. */
  readonly loading?: boolean;
}

const width = 300;
const height = 90;

export function Chart({ title, summary, steps, series, as, format = formatNumber, loading = false }: ChartProps): ReactNode {
  const at = steps.map((_, n) => series.map(({ values }) => values[n] ?? 0));
  const top = Math.max(0, ...at.map((values) => (as === 'bars' ? values.reduce((a, b) => a + b, 0) : Math.max(0, ...values))));
  const first = steps[0] ?? 0;
  const day = (steps.at(-1) ?? 0) - first >= 20 * 3_600_000;
  return (
    <figure className="chart">
      <figcaption>
        <h2>{title}</h2>
        <ul className="legend">
          {series.map(({ name, tone }) => (
            <li key={tone} className={`series-${tone}`}>
              {name}
            </li>
          ))}
        </ul>
      </figcaption>
      {top === 0 ? (
        <p className="chart-none">{loading ? t.loading : t.nothing}</p>
      ) : (
        <>
          <div className="chart-plot">
            <span className="chart-top" aria-hidden="true">
              {format(top)}
            </span>
            <svg viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={title}>
              {as === 'bars' ? <Bars at={at} series={series} top={top} /> : series.map((one) => <Line key={one.tone} series={one} top={top} count={steps.length} />)}
            </svg>
          </div>
          <p className="chart-ends" aria-hidden="true">
            <span>{day ? formatWeekday(first) : formatMinute(first)}</span>
            <span>{t.now}</span>
          </p>
        </>
      )}
      {summary && <p className="chart-says">{summary}</p>}
      <details>
        <summary>{t.asTable}</summary>
        <div className="chart-table" tabIndex={0}>
          <table className="job-table" aria-label={title}>
            <thead>
              <tr>
                {[t.time, ...series.map(({ name }) => name)].map((header) => (
                  <th key={header} scope="col">
                    {header}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {steps.map((from, n) => (
                <tr key={from}>
                  <th scope="row">{formatDate(from)}</th>
                  {series.map(({ tone, values }) => {
                    const value = values[n];
                    return <td key={tone}>{value === undefined ? '–' : format(value)}</td>;
                  })}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}

function Bars({ at, series, top }: { at: readonly (readonly number[])[]; series: readonly Series[]; top: number }): ReactNode {
  const wide = width / at.length;
  return at.map((values, n) => {
    let below = 0;
    return values.map((value, m) => {
      const tall = (value / top) * (height - 2);
      const y = height - below - tall;
      below += tall;
      return value > 0 && <rect key={`${n} ${m}`} className={`series-${series[m]?.tone ?? ''}`} x={n * wide + wide * 0.1} y={y} width={wide * 0.8} height={Math.max(1, tall)} />;
    });
  });
}

/** Broken where there is nothing; a point that stands alone is a short line. */
function Line({ series, top, count }: { series: Series; top: number; count: number }): ReactNode {
  const wide = width / count;
  const path = series.values
    .map((value, n) => {
      if (value === undefined) return '';
      const y = height - 2 - (value / top) * (height - 6);
      return `${series.values[n - 1] === undefined ? 'M' : 'L'}${(n + 0.25) * wide} ${y}L${(n + 0.75) * wide} ${y}`;
    })
    .join('');
  return <path className={`series-${series.tone}`} d={path} />;
}

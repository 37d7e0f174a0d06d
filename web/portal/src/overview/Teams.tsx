// Who has used how much, the most of it first.

import { pastUsage, type Usage } from '@kubecast/sdk';
import { useKubecast } from '@kubecast/sdk/react';
import { useCallback, useState, type ReactNode } from 'react';
import { Choice } from '../filters/Choice.tsx';
import { jobs } from '../job/resources.ts';
import { useReading } from '../polling/polling.ts';
import { causeName, isCauseNamed } from '../state/causes.ts';
import { formatDuration, formatHours, formatNumber } from '../texts/format.ts';
import { formatView, viewAt, type View } from '../view/view.ts';
import { t } from './texts.ts';

const gap = 15_000;

export function Teams({ view, since, signal }: { view: View; since: string; signal: unknown }): ReactNode {
  const kc = useKubecast();
  const { namespace } = view;
  const [by, setBy] = useState<keyof typeof t.keys>('namespace');
  const read = useCallback(() => pastUsage(kc, jobs, { namespace, by, since }), [kc, namespace, by, since]);
  const { data } = useReading(read, signal, gap);
  const rows = [...(data ?? [])].sort((a, b) => b.gpuHours - a.gpuHours || b.cpuHours - a.cpuHours || b.jobs - a.jobs);
  const unknown = rows.reduce((sum, { hoursUnknown }) => sum + hoursUnknown, 0);
  const most = (of: 'cpuHours' | 'memoryHours' | 'gpuHours'): number => Math.max(...rows.map((row) => row[of]), Number.MIN_VALUE);
  const [mostCpu, mostMemory, mostGpu] = [most('cpuHours'), most('memoryHours'), most('gpuHours')];
  return (
    <section className="overview-teams">
      <h2>
        {t.usage} <Choice label={t.by} value={by} options={Object.entries(t.keys)} onChoose={(one) => setBy(one as keyof typeof t.keys)} />
      </h2>
      {rows.length === 0 ? (
        <p className="none">{data ? t.nothing : t.loading}</p>
      ) : (
        <div className="teams-scroller" tabIndex={0} role="region" aria-label={t.usage}>
          <table className="plain-table" aria-label={t.usage}>
            <thead>
              <tr>
                <th scope="col">{t.team[by]}</th>
                {[t.jobs, t.waited, t.waitedMost, t.ran].map((header) => (
                  <th key={header} scope="col" data-numeric>
                    {header}
                  </th>
                ))}
                <th scope="col">{t.cpu}</th>
                <th scope="col">{t.memory}</th>
                <th scope="col">{t.gpu}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((row) => (
                <tr key={row.key}>
                  <th scope="row" className="team-name">
                    {row.key === '' ? (by === 'cause' ? t.uncaused : t.nobody) : by === 'cause' ? <a href={formatView({ ...viewAt('#history', view), namespace, since, cause: row.key })} translate={isCauseNamed(row.key) ? undefined : 'no'}>{causeName(row.key)}</a> : <span translate="no">{row.key}</span>}
                  </th>
                  <td data-numeric>{formatNumber(row.jobs)}</td>
                  <Spread of={row.waitedSeconds} which="p50" jobs={row.jobs} />
                  <Spread of={row.waitedSeconds} which="p90" jobs={row.jobs} />
                  <Spread of={row.ranSeconds} which="p50" jobs={row.jobs} />
                  <td>
                    <Bar value={row.cpuHours} most={mostCpu} unknown={row.hoursUnknown} />
                  </td>
                  <td>
                    <Bar value={row.memoryHours} most={mostMemory} unknown={row.hoursUnknown} />
                  </td>
                  <td>
                    <Bar value={row.gpuHours} most={mostGpu} unknown={row.hoursUnknown} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {unknown > 0 && <p className="none">{t.hoursUnknown(unknown)}</p>}
    </section>
  );
}

/** Jobs that have not run, and those whose beginning nobody saw, are not among the known. */
function Spread({ of, which, jobs }: { of: Usage['ranSeconds']; which: 'p50' | 'p90'; jobs: number }): ReactNode {
  const known = of?.count ?? 0;
  return (
    <td data-numeric title={known < jobs ? t.knownOf(known, jobs) : undefined}>
      {of ? formatDuration(of[which] * 1_000) : '–'}
    </td>
  );
}

/** Of jobs of which nobody knows what they used, nothing that is known is not nothing. */
function Bar({ value, most, unknown }: { value: number; most: number; unknown: number }): ReactNode {
  if (value === 0 && unknown > 0) return <span className="none">{t.notKnown}</span>;
  return (
    <span className="team-bar">
      <svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
        <rect width={(100 * value) / most} height="8" />
      </svg>
      {formatHours(value)}
    </span>
  );
}

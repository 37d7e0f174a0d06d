import type { ReactNode } from 'react';
import { setView, type View } from '../view/view.ts';
import type { Served } from './served.ts';
import { t } from './texts.ts';
import './clusters.css';

/** What stands for all of them, which no cluster is called. */
const all = '*';

/** Which cluster pages are of. On those that show all it narrows them to one, and the others stay with that. */
export function ClusterChoice({ served, view }: { readonly served: readonly Served[]; readonly view: View }): ReactNode {
  const { page, cluster, only } = view;
  const showsAll = page === 'mine' || page === 'history';
  const options = served.map(({ name, default: first, state }) => [first ? '' : name, state === 'live' ? name : t.away(name)] as const);
  const own = served.find((one) => one.default && one.name === cluster) ? '' : cluster;
  if (!options.some(([value]) => value === own)) options.push([own, own]);
  const choose = (value: string): void => {
    if (value === all) setView({ only: '' });
    else setView({ cluster: value, only: showsAll ? 'cluster' : '', object: undefined });
  };
  return (
    <select className="field clusters" aria-label={t.cluster} title={t.cluster} value={showsAll && !only ? all : own} onChange={({ target }) => choose(target.value)}>
      {showsAll && <option value={all}>{t.all}</option>}
      {options.map(([value, words]) => (
        <option key={value} value={value} translate="no">
          {words}
        </option>
      ))}
    </select>
  );
}

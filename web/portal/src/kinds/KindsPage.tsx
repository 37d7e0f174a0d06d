// The kinds that the user may see something of, to choose from; or the table of one.

import type { ReactNode } from 'react';
import { Notice } from '../app/Notice.tsx';
import { Search } from '../filters/Search.tsx';
import { formatView, linkToKind, viewAt, type View } from '../view/view.ts';
import { useKinds, type Kind } from './discovery.ts';
import { KindTable } from './KindTable.tsx';
import { t } from './texts.ts';
import './kinds.css';

export function KindsPage({ view }: { view: View }): ReactNode {
  const { data: kinds, error, retry } = useKinds();
  if (!kinds) {
    if (!error) return <p className="page-wait">{t.loading}</p>;
    return (
      <Notice title={t.failed} said={error.message} onRetry={retry}>
        {t.failedWhy}
      </Notice>
    );
  }
  if (view.kind === '') return <Picker kinds={kinds} view={view} />;
  const kind = kinds.find(({ id }) => id === view.kind);
  if (kind) return <KindTable key={kind.id} kind={kind} view={view} />;
  return (
    <Notice title={t.unknown} said={undefined} onRetry={retry}>
      {t.unknownWhy} <a href={formatView(viewAt('#kinds', view))}>{t.allKinds}</a>
    </Notice>
  );
}

/** Of the groups that Kubernetes itself serves, and not of a resource that somebody has defined. */
const builtIn = ({ group }: Kind): boolean => !group.includes('.') || group.endsWith('.k8s.io');

/** Whether a kind goes by what was typed. */
export function matches({ plural, kind, shortNames, group }: Kind, text: string): boolean {
  const sought = text.trim().toLowerCase();
  return [plural, kind.toLowerCase(), `${plural}.${group}`].some((name) => name.includes(sought)) || shortNames.includes(sought);
}

function Picker({ kinds, view }: { kinds: readonly Kind[]; view: View }): ReactNode {
  const found = kinds.filter((kind) => matches(kind, view.search)).sort((a, b) => a.plural.localeCompare(b.plural));
  const own = found.filter((kind) => !builtIn(kind));
  const others = found.filter(builtIn);
  return (
    <>
      <div className="toolbar">
        <h1 className="toolbar-title">{t.title}</h1>
        <Search value={view.search} label={t.search} />
      </div>
      <div className="kinds" tabIndex={-1}>
        {found.length === 0 && <p className="job-none">{t.none}</p>}
        {own.length > 0 && <Group title={t.own} kinds={own} view={view} />}
        {others.length > 0 && <Group title={t.core} kinds={others} view={view} />}
      </div>
    </>
  );
}

function Group({ title, kinds, view }: { title: string; kinds: readonly Kind[]; view: View }): ReactNode {
  return (
    <section aria-label={title}>
      <h2>{title}</h2>
      <ul>
        {kinds.map((kind) => (
          <li key={kind.id}>
            <a className="row-link" href={linkToKind(kind.id, { ...view, search: '' })} translate="no">
              {kind.kind}
            </a>
            <span className="state-detail">
              <span translate="no">{kind.group || 'v1'}</span>
              {!kind.namespaced && ` · ${t.clusterWide}`}
            </span>
          </li>
        ))}
      </ul>
    </section>
  );
}

// The frame around the tables: where one is, what is filtered, and how fresh it all is.

import { KubecastProvider } from '@kubecast/sdk/react';
import { useEffect, useSyncExternalStore, type ReactNode } from 'react';
import { ConnectionStatus } from '../connection/ConnectionStatus.tsx';
import type { Feed, FeedState } from '../feed/feed.ts';
import { useRested } from '../feed/useRested.ts';
import { NamespaceInput, NamespaceSelect } from '../filters/NamespacePicker.tsx';
import { Search } from '../filters/Search.tsx';
import { JobPage } from '../job/JobPage.tsx';
import { JobsPage } from '../jobs/JobsPage.tsx';
import { PodsPage } from '../pods/PodsPage.tsx';
import type { Claims } from '../session/session.ts';
import { linkTo, useView, type View } from '../view/view.ts';
import { Account } from './Account.tsx';
import { Logo } from './Logo.tsx';
import { Notice } from './Notice.tsx';

const pages = ['jobs', 'pods'] as const;
const titles = { jobs: 'Jobs', pods: 'Pods' };

interface WorkspaceProps {
  readonly feed: Feed;
  readonly claims: Claims;
  /** Undefined: the browser has a cookie. */
  readonly token: string | undefined;
  /** Signing out has failed. */
  readonly stuck: boolean;
  readonly onSignOut: () => void;
}

export function Workspace({ feed, claims, token, stuck, onSignOut }: WorkspaceProps): ReactNode {
  const view = useView();
  const state = useSyncExternalStore(feed.subscribe, feed.getSnapshot);

  const namespace = useRested(view.namespace);

  useEffect(() => {
    feed.setNamespace(namespace);
  }, [feed, namespace]);
  useEffect(() => {
    feed.setPage(view.page);
  }, [feed, view.page]);
  const { object } = view;
  useEffect(() => {
    feed.setDetail(object !== undefined);
  }, [feed, object]);
  useEffect(() => {
    const table = `${titles[view.page]}${view.namespace ? ` in ${view.namespace}` : ''}`;
    document.title = `${object?.name ?? table} · Kubecast`;
  }, [view.page, view.namespace, object]);

  return (
    <>
      <header className="top">
        <span className="brand">
          <Logo /> Kubecast
        </span>
        <nav aria-label="Pages">
          {pages.map((page) => (
            <a key={page} href={linkTo(page, view)} aria-current={page === view.page ? (object ? 'true' : 'page') : undefined}>
              {titles[page]}
            </a>
          ))}
        </nav>
        <ConnectionStatus connection={state.connection} rows={object ? details : state.live.collection(view.page)} onRetry={() => feed.retry()} />
        <Account claims={claims} stuck={stuck} onSignOut={onSignOut} />
      </header>
      <main className="page">
        {object ? (
          <KubecastProvider client={feed.details}>
            <JobPage key={`${object.namespace}/${object.name}`} view={view} {...object} token={token} />
          </KubecastProvider>
        ) : (
          <Page view={view} state={state} onRetry={() => feed.retry()} />
        )}
      </main>
    </>
  );
}

/** What a page of one object shows says by itself how far it can be trusted. */
const details = { subscribe: () => () => undefined, getSnapshot: () => ({ phase: 'current' as const }) };

interface PageProps {
  readonly view: View;
  readonly state: FeedState;
  readonly onRetry: () => void;
}

function Page({ view, state, onRetry }: PageProps): ReactNode {
  const { live, watches, forbidden, visible } = state;
  const connection = useSyncExternalStore(state.connection.subscribe, state.connection.getSnapshot);
  const ended = connection.phase === 'closed' && connection.reason !== 'caller';

  const filters = (
    <>
      {listed(state) ? (
        <NamespaceSelect
          namespaces={watches.includes('namespaces') ? live.collection('namespaces') : undefined}
          visible={visible}
          selected={view.namespace}
        />
      ) : (
        <NamespaceInput selected={view.namespace} />
      )}
      <Search value={view.search} label={`Search ${view.page}`} />
    </>
  );

  if (!forbidden && !ended && watches.includes(view.page)) {
    const where = view.namespace ? `in ${view.namespace}` : visible ? 'in what you may see of the cluster' : 'in the cluster';
    const table = { view, filters, empty: `There are no ${view.page} ${where}. They will appear here as they are created.` };
    if (view.page === 'jobs') return <JobsPage {...table} collection={live.collection('jobs')} />;
    return <PodsPage {...table} collection={live.collection('pods')} />;
  }
  return (
    <>
      <div className="toolbar">{filters}</div>
      {ended ? (
        <Notice title="The stream has ended" said={connection.message} onRetry={onRetry}>
          The gateway has refused it in a way that trying again by itself would not mend.
        </Notice>
      ) : forbidden || connection.phase === 'live' ? (
        <Forbidden view={view} state={state} onRetry={onRetry} />
      ) : null /* for the moment in which less is being asked for */}
    </>
  );
}

/** Whether there are namespaces to choose from. */
function listed({ watches, visible, forbidden }: FeedState): boolean {
  return visible !== undefined || (watches.includes('namespaces') && !forbidden);
}

function Forbidden({ view, state, onRetry }: PageProps): ReactNode {
  const where = view.namespace ? `in ${view.namespace}` : 'of all namespaces';
  return (
    <Notice title={`You may not see ${view.page} ${where}`} said={state.refusal} onRetry={onRetry}>
      {view.namespace ? 'Is the name right? ' : 'You may well see those of your own. '}
      {listed(state) ? 'Choose a namespace above.' : 'Enter the name of a namespace above.'}
    </Notice>
  );
}

// The frame around the tables: where one is, what is filtered, and how fresh it all is.

import { inboxOf } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { useEffect, useSyncExternalStore, type ReactNode } from 'react';
import { ConnectionStatus } from '../connection/ConnectionStatus.tsx';
import { DatedBy } from '../connection/Dated.tsx';
import type { Feed, FeedState } from '../feed/feed.ts';
import type { TableName } from '../feed/kinds.ts';
import { useRested } from '../feed/useRested.ts';
import { NamespaceInput, NamespaceSelect } from '../filters/NamespacePicker.tsx';
import { Search } from '../filters/Search.tsx';
import { Bell } from '../inbox/Bell.tsx';
import { keepNotices } from '../inbox/notices.ts';
import { useUnread } from '../inbox/useUnread.ts';
import { JobsPage } from '../jobs/JobsPage.tsx';
import { Route, shownPages } from '../pages/Route.tsx';
import { t as pages } from '../pages/texts.ts';
import { PodsPage } from '../pods/PodsPage.tsx';
import type { Claims } from '../session/session.ts';
import { linkTo, linkToJob, parseView, tableOf, useView, type View } from '../view/view.ts';
import { Account } from './Account.tsx';
import { Logo } from './Logo.tsx';
import { Notice } from './Notice.tsx';
import { t } from './texts.ts';

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
  const { page, object, kind } = view;
  const table = tableOf(view);
  useEffect(() => {
    if (table) feed.setPage(table);
    feed.setDetail(!table);
  }, [feed, table]);

  const { user } = claims;
  const unread = useUnread(inboxOf(feed.details), user) ?? 0;
  useEffect(() => {
    const title = kind || (pages.titles[page]);
    const shown = page !== 'mine' && view.namespace ? t.titleIn(title, view.namespace) : title;
    document.title = `${unread > 0 ? `${unread > 99 ? t.unreadMany : t.unread(unread)} ` : ''}${object?.name ?? shown} · Kubecast`;
  }, [page, kind, view.namespace, object, unread]);
  useEffect(
    () =>
      keepNotices({
        user,
        inbox: inboxOf(feed.details),
        aside: inboxOf(feed.aside),
        onOpen: (item) => (location.hash = item?.transition ? linkToJob(item.transition.namespace, item.transition.name, parseView(location.hash)) : '#mine'),
      }),
    [feed, user],
  );

  return (
    <KubecastProvider client={feed.details}>
      <header className="top">
        <span className="brand" translate="no">
          <Logo /> Kubecast
        </span>
        <nav aria-label={t.pagesLabel}>
          {shownPages.map((one) => (
            <a key={one} href={linkTo(one, view)} aria-current={one === page ? (object || kind ? 'true' : 'page') : undefined}>
              {pages.titles[one]}
            </a>
          ))}
        </nav>
        <ConnectionStatus connection={state.connection} rows={table ? state.live.collection(table) : details} onRetry={() => feed.retry()} />
        <Bell view={view} user={user} />
        <Account claims={claims} stuck={stuck} onSignOut={onSignOut} />
      </header>
      <main className="page">
        {table ? <Page view={view} page={table} state={state} onRetry={() => feed.retry()} /> : <Route view={view} token={token} />}
      </main>
    </KubecastProvider>
  );
}

/** What is followed beside the tables says by itself how far it can be trusted. */
const details = { subscribe: () => () => undefined, getSnapshot: () => ({ phase: 'current' as const }) };

interface PageProps {
  readonly view: View;
  readonly page: TableName;
  readonly state: FeedState;
  readonly onRetry: () => void;
}

function Page({ view, page, state, onRetry }: PageProps): ReactNode {
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
      <Search value={view.search} label={t.search[page] ?? ''} />
    </>
  );

  if (!forbidden && !ended && watches.includes(page)) {
    const table = { view, filters, empty: t.empty[page](view.namespace, visible !== undefined) };
    return (
      <DatedBy connection={state.connection}>
        {page === 'jobs' ? <JobsPage {...table} collection={live.collection('jobs')} /> : <PodsPage {...table} collection={live.collection('pods')} />}
      </DatedBy>
    );
  }
  return (
    <>
      <div className="toolbar">{filters}</div>
      {ended ? (
        <Notice title={t.ended} said={connection.message} onRetry={onRetry}>
          {t.endedWhy}
        </Notice>
      ) : forbidden || connection.phase === 'live' ? (
        <Forbidden view={view} page={page} state={state} onRetry={onRetry} />
      ) : null /* for the moment in which less is being asked for */}
    </>
  );
}

/** Whether there are namespaces to choose from. */
function listed({ watches, visible, forbidden }: FeedState): boolean {
  return visible !== undefined || (watches.includes('namespaces') && !forbidden);
}

function Forbidden({ view, page, state, onRetry }: PageProps): ReactNode {
  return (
    <Notice title={t.forbidden[page](view.namespace)} said={state.refusal} onRetry={onRetry}>
      {view.namespace ? t.nameRight : t.yourOwn} {listed(state) ? t.choose : t.enter}
    </Notice>
  );
}

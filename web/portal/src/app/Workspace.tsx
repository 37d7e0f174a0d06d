// The frame around the tables: where one is, what is filtered, and how fresh it all is.

import { inboxOf, type Collection, type KubeObject } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { useEffect, useRef, useSyncExternalStore, type ReactNode } from 'react';
import { ConnectionStatus } from '../connection/ConnectionStatus.tsx';
import { DatedBy } from '../connection/Dated.tsx';
import type { Feed, FeedState } from '../feed/feed.ts';
import type { TableName } from '../feed/kinds.ts';
import { useRested } from '../feed/useRested.ts';
import { NamespaceInput, NamespacesOf } from '../filters/NamespacePicker.tsx';
import { Search } from '../filters/Search.tsx';
import { Bell } from '../inbox/Bell.tsx';
import { keepNotices } from '../inbox/notices.ts';
import { useUnread } from '../inbox/useUnread.ts';
import { Keys } from '../keys/Keys.tsx';
import { useLarge } from '../large/useSize.ts';
import { JobsTable, LargeTable, PodsTable, Route, Waiting } from '../pages/Route.tsx';
import { shownPages } from '../pages/shown.ts';
import { t as pages } from '../pages/texts.ts';
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
  const main = useRef<HTMLElement>(null);
  const state = useSyncExternalStore(feed.subscribe, feed.getSnapshot);

  const namespace = useRested(view.namespace);

  useEffect(() => {
    feed.setNamespace(namespace);
  }, [feed, namespace]);
  const { page, object, kind } = view;
  const table = tableOf(view);
  const large = useLarge(feed.details, table, namespace);
  useEffect(() => {
    if (table) feed.setPage(table);
    feed.setDetail(!table || large === true);
  }, [feed, table, large]);

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
      <button type="button" className="button skip" onClick={() => main.current?.focus()}>
        {t.skip}
      </button>
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
        <Keys />
        <ConnectionStatus connection={state.connection} rows={table && !large ? state.live.collection(table) : details} onRetry={() => feed.retry()} />
        <Bell view={view} user={user} />
        <Account claims={claims} stuck={stuck} onSignOut={onSignOut} />
      </header>
      <main className="page" ref={main} tabIndex={-1}>
        {table ? <Page view={view} page={table} state={state} large={large === true} onRetry={() => feed.retry()} /> : <Route view={view} token={token} />}
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
  /** There are too many for the page to have them all. */
  readonly large: boolean;
  readonly onRetry: () => void;
}

function Page({ view, page, state, large, onRetry }: PageProps): ReactNode {
  const { live, watches, forbidden, visible } = state;
  const connection = useSyncExternalStore(state.connection.subscribe, state.connection.getSnapshot);
  const ended = connection.phase === 'closed' && connection.reason !== 'caller';

  if (large) {
    return (
      <DatedBy connection={state.connection}>
        <h1 className="unseen">{pages.titles[page]}</h1>
        <Waiting>
          <LargeTable key={page} page={page} view={view} />
        </Waiting>
      </DatedBy>
    );
  }
  const filters = (
    <>
      {listed(state) ? (
        <NamespacesOf
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
    const table = { view, filters, empty: <Nothing view={view} page={page} state={state} /> };
    return (
      <DatedBy connection={state.connection}>
        <h1 className="unseen">{pages.titles[page]}</h1>
        <Waiting>
          {page === 'jobs' ? <JobsTable {...table} collection={live.collection('jobs')} /> : <PodsTable {...table} collection={live.collection('pods')} />}
        </Waiting>
      </DatedBy>
    );
  }
  return (
    <>
      <h1 className="unseen">{pages.titles[page]}</h1>
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

/** Why a table is empty: a namespace that is not there is no empty one. */
function Nothing({ view: { namespace }, page, state: { live, watches, visible } }: Pick<PageProps, 'view' | 'page' | 'state'>): ReactNode {
  const said = t.empty[page](namespace, visible !== undefined);
  // Who sees some namespaces only is not told which others there are.
  if (namespace === '' || visible !== undefined || !watches.includes('namespaces')) return <p>{said}</p>;
  return <NothingIn namespace={namespace} said={said} namespaces={live.collection('namespaces')} />;
}

function NothingIn({ namespace, said, namespaces }: { readonly namespace: string; readonly said: string; readonly namespaces: Collection<KubeObject> }): ReactNode {
  const { items, phase } = useSyncExternalStore(namespaces.subscribe, namespaces.getSnapshot);
  if (phase !== 'current' || items.some(({ metadata }) => metadata.name === namespace)) return <p>{said}</p>;
  return (
    <>
      <p>{t.noNamespace(namespace)}</p>
      <p>{t.noNamespaceWhy}</p>
    </>
  );
}

/** Whether there are namespaces to choose from. */
function listed({ watches, visible, forbidden }: FeedState): boolean {
  return visible !== undefined || (watches.includes('namespaces') && !forbidden);
}

function Forbidden({ view, page, state, onRetry }: Omit<PageProps, 'large'>): ReactNode {
  return (
    <Notice title={t.forbidden[page](view.namespace)} said={state.refusal} onRetry={onRetry}>
      {view.namespace ? t.nameRight : t.yourOwn} {listed(state) ? t.choose : t.enter}
    </Notice>
  );
}

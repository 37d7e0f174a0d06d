// The frame around the tables: where one is, what is filtered, and how fresh it all is.

import { inboxOf, type ConnectionState, type Kubecast } from '@kubecast/sdk';
import { KubecastProvider } from '@kubecast/sdk/react';
import { Suspense, useCallback, useEffect, useRef, useState, type ReactNode } from 'react';
import type { inCluster } from '../clusters/inCluster.ts';
import { ServedClusters, useServedBy, viewIn } from '../clusters/served.ts';
import { ConnectionStatus } from '../connection/ConnectionStatus.tsx';
import type { Observable } from '../connection/connection.ts';
import { DatedByConnection } from '../connection/Dated.tsx';
import { useDevtools } from '../devtools/useDevtools.ts';
import { Bell } from '../inbox/Bell.tsx';
import { keepNotices } from '../inbox/notices.ts';
import { useUnread } from '../inbox/useUnread.ts';
import { Shortcuts } from '../shortcuts/Shortcuts.tsx';
import { useLarge } from '../virtual/useSize.ts';
import { useRested } from '../scheduling/useRested.ts';
import { Wait, Waiting } from '../pages/page.tsx';
import { ClusterChoice, JobsTable, LargeTable, PodsTable, Route, Scoped } from '../pages/Route.tsx';
import { HasQueues, shownPages, useQueuesSought } from '../pages/shown.ts';
import { t as pages } from '../pages/texts.ts';
import type { Claims } from '../session/session.ts';
import { watchOf } from '../table/watched.ts';
import { formatView, linkTo, linkToRun, parseView, tableOf, useView, type TableName, type View } from '../view/view.ts';
import { Account } from './Account.tsx';
import { Logo } from './Logo.tsx';
import { t } from './texts.ts';
import { useTitle } from './title.ts';

interface WorkspaceProps {
  readonly kc: Kubecast;
  /** Goes on while nobody looks. */
  readonly aside: Kubecast;
  readonly connection: Observable<ConnectionState>;
  readonly claims: Claims;
  /** Undefined: the browser has a cookie. */
  readonly token: string | undefined;
  /** Signing out has failed. */
  readonly stuck: boolean;
  readonly onSignOut: () => void;
}

export function Workspace({ kc, aside, connection, claims, token, stuck, onSignOut }: WorkspaceProps): ReactNode {
  const view = useView();
  const main = useRef<HTMLElement>(null);
  const nav = useRef<HTMLElement>(null);
  const namespace = useRested(view.namespace);
  const { page, object, kind, cluster } = view;
  const served = useServedBy(kc);
  const [within, setWithin] = useState<typeof inCluster>();
  const onWithin = useCallback((how: typeof inCluster) => setWithin(() => how), []);
  /** Of the cluster that the address names; undefined: how that is asked is not there yet. */
  const scoped = cluster === '' ? kc : within?.(kc, cluster);
  // Each says by itself whether it is away.
  const apart = served.length > 1 && !view.only && (page === 'mine' || page === 'history');
  const table = tableOf(view);
  const large = useLarge(scoped, table, namespace);
  const queues = useQueuesSought(scoped ?? kc);

  // Where they do not all fit, the one that is shown does.
  useEffect(() => nav.current?.querySelector('[aria-current]')?.scrollIntoView({ block: 'nearest', inline: 'nearest' }), [page]);

  const { user } = claims;
  const unread = useUnread(inboxOf(kc), user) ?? 0;
  // Who may know nothing of the default one has another in its place.
  const instead = cluster === '' && !served.some((one) => one.default) ? served[0]?.name : undefined;
  useEffect(() => {
    if (instead !== undefined) location.replace(formatView({ ...parseView(location.hash), cluster: instead }));
  }, [instead]);

  const title = view.unknown ? pages.unknown : kind || pages.titles[page];
  const name = object?.name ?? (page !== 'mine' && view.namespace ? t.titleIn(title, view.namespace) : title);
  const shown = name + (cluster && ` · ${cluster}`);
  useTitle(name, cluster, unread);
  // It is not needed before somebody goes anywhere.
  useEffect(() => {
    let over: true | (() => void) | undefined;
    void import('../navigation/navigation.ts').then(
      ({ followNavigation }) => over ?? (main.current && (over = followNavigation(main.current))),
      () => undefined,
    );
    return () => {
      if (typeof over === 'function') over();
      over = true;
    };
  }, []);
  useEffect(
    () =>
      keepNotices({
        user,
        inbox: inboxOf(kc),
        aside: inboxOf(aside),
        onOpen: (item) => (location.hash = item?.transition ? linkToRun(item.transition, viewIn(served, parseView(location.hash), item.transition.cluster)) : '#mine'),
      }),
    [kc, aside, user, served],
  );

  const openDevtools = useDevtools(kc);

  return (
    <KubecastProvider client={kc}>
      <ServedClusters value={served}>
        <HasQueues value={queues}>
          <button type="button" className="button skip" onClick={() => main.current?.focus()}>
            {t.skip}
          </button>
          <header className="top">
            <span className="brand" translate="no">
              <Logo /> Kubecast
            </span>
            {served.length > 1 && (
              <Suspense fallback={null}>
                <ClusterChoice served={served} view={view} />
              </Suspense>
            )}
            <nav ref={nav} aria-label={t.pagesLabel}>
              {shownPages(queues).map((one) => (
                <a key={one} href={linkTo(one, view)} aria-current={one === page && !view.unknown ? (object || kind ? 'true' : 'page') : undefined}>
                  {pages.titles[one]}
                </a>
              ))}
            </nav>
            <KubecastProvider client={scoped ?? kc}>
              <Shortcuts onDevtools={openDevtools} />
            </KubecastProvider>
            <ConnectionStatus apart={apart} connection={connection} rows={scoped && table && large === false ? watchOf(scoped, table, namespace) : undefined} onRetry={() => kc.wake()} />
            <Bell view={view} user={user} />
            <Account claims={claims} alone={token !== undefined} stuck={stuck} onSignOut={onSignOut} />
          </header>
          <p role="status" className="unseen" translate={object || kind ? 'no' : undefined}>
            {shown}
          </p>
          <main className="page" ref={main} tabIndex={-1}>
            <DatedByConnection apart={apart}>
              {scoped ? (
                <KubecastProvider key={cluster} client={scoped}>
                  {table ? <Table key={table} table={table} view={view} large={large} /> : <Route view={view} token={token} />}
                </KubecastProvider>
              ) : (
                <Waiting>
                  <Scoped onReady={onWithin} />
                </Waiting>
              )}
            </DatedByConnection>
          </main>
        </HasQueues>
      </ServedClusters>
    </KubecastProvider>
  );
}

interface TableProps {
  readonly table: TableName;
  readonly view: View;
  /** There are too many for the page to have them all; undefined: it is not known yet. */
  readonly large: boolean | undefined;
}

function Table({ table, view, large }: TableProps): ReactNode {
  const Full = table === 'jobs' ? JobsTable : PodsTable;
  return (
    <>
      <h1 className="unseen">{pages.titles[table]}</h1>
      <Waiting>{large === undefined ? <Wait /> : large ? <LargeTable page={table} view={view} /> : <Full view={view} />}</Waiting>
    </>
  );
}

// Every page, each loaded when it is first gone to.

import { useEffect, type ReactNode } from 'react';
import { tableOf, type PageName, type View } from '../view/view.ts';
import { page, Waiting, type Page } from './page.tsx';

export interface RouteProps {
  readonly view: View;
  /** What a request has to carry beside cookies. */
  readonly token: string | undefined;
}

interface ObjectProps extends RouteProps {
  readonly namespace: string;
  readonly name: string;
  readonly uid?: string;
}

const Mine = page(() => import('../home/HomePage.tsx').then(({ HomePage }) => HomePage));
const Unknown = page(() => import('./Unknown.tsx').then(({ Unknown: shown }) => shown));
const Other = page(() => import('../object/ObjectPage.tsx').then(({ ObjectPage }) => ObjectPage));
const Node = page(() => import('../object/NodePage.tsx').then(({ NodePage }) => NodePage));

/** What shows a page that is no table, and one of its objects; {@link Mine} and {@link Other} where there is none. */
const pages: Partial<Record<PageName, Page<RouteProps>>> = {
  kinds: page(() => import('../kinds/KindsPage.tsx').then(({ KindsPage }) => KindsPage)),
  overview: page(() => import('../overview/OverviewPage.tsx').then(({ OverviewPage }) => OverviewPage)),
  queues: page(() => import('../queues/QueuesPage.tsx').then(({ QueuesPage }) => QueuesPage)),
  history: page(() => import('../history/HistoryPage.tsx').then(({ HistoryPage }) => HistoryPage)),
};
const objectPages: Partial<Record<PageName, Page<ObjectProps>>> = {
  jobs: page(() => import('../job/JobPage.tsx').then(({ JobPage }) => JobPage)),
  pods: page(() => import('../object/PodPage.tsx').then(({ PodPage }) => PodPage)),
  queues: page(() => import('../queues/QueuePage.tsx').then(({ QueuePage }) => QueuePage)),
};
const pageOf = ({ page: name }: View): Page<RouteProps> => pages[name] ?? Mine;
const objectPageOf = ({ page: name, kind }: View): Page<ObjectProps> => objectPages[name] ?? (kind === 'nodes' ? Node : Other);

/** The tables: of all that there are, or, where there are too many, of what is in sight. */
export const JobsTable = page(() => import('../jobs/JobsPage.tsx').then(({ JobsPage }) => JobsPage));
export const PodsTable = page(() => import('../pods/PodsPage.tsx').then(({ PodsPage }) => PodsPage));
export const LargeTable = page(() => import('../virtual/Tables.tsx').then((tables) => tables.LargeTable));

/** Of gateways that serve several clusters: which one, and what asks of another one than the default. */
export const ClusterChoice = page(() => import('../clusters/ClusterChoice.tsx').then((choice) => choice.ClusterChoice));
export const Scoped = page(() => import('../clusters/Scoped.tsx').then((scoped) => scoped.Scoped));

interface DialogProps {
  readonly onClose: () => void;
  /** It could not be loaded. */
  readonly onFailed: () => void;
}

/** In place of a dialog that could not be loaded: who opens it says so. */
function Failed({ onFailed }: DialogProps): ReactNode {
  useEffect(onFailed, [onFailed]);
  return null;
}

/** What keys open. */
export const KeysHelp = page<DialogProps>(() => import('../shortcuts/Help.tsx').then(({ Help }) => Help), Failed);
export const Palette = page<DialogProps>(() => import('../palette/Palette.tsx').then((palette) => palette.Palette), Failed);

export function Route({ view, token }: RouteProps): ReactNode {
  return <Waiting>{shown(view, token)}</Waiting>;
}

function shown(view: View, token: string | undefined): ReactNode {
  if (view.unknown) return <Unknown view={view} />;
  const { page: name, kind, object } = view;
  if (object) {
    const Shown = objectPageOf(view);
    return <Shown key={`${name}/${kind}/${object.namespace}/${object.name}@${object.uid ?? ''}`} view={view} token={token} {...object} />;
  }
  const Shown = pageOf(view);
  return <Shown view={view} token={token} />;
}

/**
 * Begins to load what shows a view, beside whatever else it waits for: over a line with a delay each wait in a row is seen. Of a table either form,
 * since which one it is depends on how much there is.
 */
export function loadPage(view: View): void {
  const table = tableOf(view);
  if (table) for (const one of [table === 'jobs' ? JobsTable : PodsTable, LargeTable]) one.begin();
  else (view.object ? objectPageOf(view) : pageOf(view)).begin();
}

// Every page, each loaded when it is first gone to.

import { lazy, Suspense, type ComponentType, type ReactNode } from 'react';
import { tableOf, type View } from '../view/view.ts';
import { t } from './texts.ts';

export interface RouteProps {
  readonly view: View;
  /** What a request has to carry beside cookies. */
  readonly token: string | undefined;
}

interface Begun {
  /** Loads it, if that has not begun. */
  readonly begin: () => void;
}

type Page<P> = ComponentType<P> & Begun;

/** A page, or a word of why there is none: the gateway may be away, or a newer one with other files. */
function page<P extends object>(load: () => Promise<ComponentType<P>>): Page<P> {
  const made = lazy(() => load().then((found) => ({ default: found }), () => ({ default: NotLoaded as ComponentType<P> })));
  const begin = (): void => void load().catch(() => undefined); // who shows it says so
  return Object.assign(made as ComponentType<P>, { begin });
}

const Mine = page(() => import('../mine/MinePage.tsx').then(({ MinePage }) => MinePage));
const Kinds = page(() => import('../kinds/KindsPage.tsx').then(({ KindsPage }) => KindsPage));
const Overview = page(() => import('../overview/OverviewPage.tsx').then(({ OverviewPage }) => OverviewPage));
const History = page(() => import('../past/HistoryPage.tsx').then(({ HistoryPage }) => HistoryPage));
const Pod = page(() => import('../object/PodPage.tsx').then(({ PodPage }) => PodPage));
const Node = page(() => import('../object/NodePage.tsx').then(({ NodePage }) => NodePage));
const Other = page(() => import('../object/ObjectPage.tsx').then(({ ObjectPage }) => ObjectPage));
const Job = page(() => import('../job/JobPage.tsx').then(({ JobPage }) => JobPage));

/** The tables: of all that there are, or, where there are too many, of what is in sight. */
export const JobsTable = page(() => import('../jobs/JobsPage.tsx').then(({ JobsPage }) => JobsPage));
export const PodsTable = page(() => import('../pods/PodsPage.tsx').then(({ PodsPage }) => PodsPage));
export const LargeTable = page(() => import('../large/Tables.tsx').then((tables) => tables.LargeTable));

/** What keys open. */
export const KeysHelp = page(() => import('../keys/Help.tsx').then(({ Help }) => Help));
export const Palette = page(() => import('../palette/Palette.tsx').then((palette) => palette.Palette));

/** What is shown until a page is there. */
export function Waiting({ children }: { readonly children: ReactNode }): ReactNode {
  return <Suspense fallback={<Wait />}>{children}</Suspense>;
}

/** In place of what is not known yet. */
export function Wait(): ReactNode {
  return <p className="page-wait">{t.loading}</p>;
}

export function Route({ view, token }: RouteProps): ReactNode {
  return <Waiting>{pageOf(view, token)}</Waiting>;
}

/**
 * Begins to load what shows a view, beside whatever else it waits for: over a line with a delay each wait in a row is seen. Of a table either form,
 * since which one it is depends on how much there is.
 */
export function loadPage(view: View): void {
  const table = tableOf(view);
  if (table) for (const one of [table === 'jobs' ? JobsTable : PodsTable, LargeTable]) one.begin();
  else shownBy(view).begin();
}

/** Which component shows what is no table. */
function shownBy({ page: name, kind, object }: View): Begun {
  if (object) return name === 'jobs' ? Job : name === 'pods' ? Pod : kind === 'nodes' ? Node : Other;
  return name === 'overview' ? Overview : name === 'history' ? History : name === 'kinds' ? Kinds : Mine;
}

function pageOf(view: View, token: string | undefined): ReactNode {
  const { page: name, kind, object } = view;
  if (object) {
    const key = `${name}/${kind}/${object.namespace}/${object.name}`;
    if (name === 'jobs') return <Job key={key} view={view} {...object} token={token} />;
    if (name === 'pods') return <Pod key={key} view={view} {...object} token={token} />;
    return kind === 'nodes' ? <Node key={key} view={view} name={object.name} /> : <Other key={key} view={view} {...object} />;
  }
  switch (name) {
    case 'overview':
      return <Overview view={view} />;
    case 'history':
      return <History view={view} />;
    case 'kinds':
      return <Kinds view={view} />;
    default:
      return <Mine view={view} />;
  }
}

function NotLoaded(): ReactNode {
  return (
    <div className="notice" role="alert">
      <p>{t.notLoaded}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {t.reload}
      </button>
    </div>
  );
}

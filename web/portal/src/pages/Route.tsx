// Every page but the tables, each loaded when it is first gone to.

import { lazy, Suspense, type ComponentType, type ReactNode } from 'react';
import type { PageName, View } from '../view/view.ts';
import { t } from './texts.ts';

/** Those that the header leads to. */
export const shownPages: readonly PageName[] = ['mine', 'jobs', 'pods'];

export interface RouteProps {
  readonly view: View;
  /** What a request has to carry beside cookies. */
  readonly token: string | undefined;
}

/** A page, or a word of why there is none: the gateway may be away, or a newer one with other files. */
function page<P extends object>(load: () => Promise<ComponentType<P>>): ComponentType<P> {
  return lazy(() => load().then((found) => ({ default: found }), () => ({ default: NotLoaded as ComponentType<P> })));
}

const Mine = page(() => import('../mine/MinePage.tsx').then(({ MinePage }) => MinePage));
const Job = page(() => import('../job/JobPage.tsx').then(({ JobPage }) => JobPage));

export function Route({ view, token }: RouteProps): ReactNode {
  return <Suspense fallback={<p className="page-wait">{t.loading}</p>}>{pageOf(view, token)}</Suspense>;
}

function pageOf(view: View, token: string | undefined): ReactNode {
  const { page: name, object } = view;
  if (object) return <Job key={`${object.namespace}/${object.name}`} view={view} {...object} token={token} />;
  return name === 'mine' ? <Mine view={view} /> : null;
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

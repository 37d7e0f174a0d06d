// What is loaded when it is first shown: pages, and parts of them that few open.

import { lazy, Suspense, type FunctionComponent, type ReactNode } from 'react';
import { t } from './texts.ts';

interface Begun {
  /** Loads it, if that has not begun. */
  readonly begin: () => void;
}

export type Page<P> = FunctionComponent<P> & Begun;

/** A page, or a part of one, or a word of why there is none: the gateway may be away, or a newer one with other files. */
export function page<P extends object>(load: () => Promise<FunctionComponent<P>>): Page<P> {
  const made = lazy(() => load().then((found) => ({ default: found }), () => ({ default: NotLoaded as FunctionComponent<P> })));
  const begin = (): void => void load().catch(() => undefined); // who shows it says so
  return Object.assign(made as unknown as FunctionComponent<P>, { begin });
}

/** What is shown until a page is there. */
export function Waiting({ children }: { readonly children: ReactNode }): ReactNode {
  return <Suspense fallback={<Wait />}>{children}</Suspense>;
}

/** In place of what is not known yet. */
export function Wait(): ReactNode {
  return <p className="page-wait">{t.loading}</p>;
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

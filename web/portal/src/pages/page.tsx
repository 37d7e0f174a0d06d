// What is loaded when it is first shown: pages, and parts of them that few open.

import { createContext, createElement, lazy, Suspense, useContext, useEffect, useReducer, type FunctionComponent, type ReactNode } from 'react';
import { t } from './texts.ts';

interface Begun {
  /** Loads it, if that has not begun. */
  readonly begin: () => void;
}

export type Page<P> = FunctionComponent<P> & Begun;

/** Draws a page anew, which could not be loaded before. */
const Redraw = createContext<() => void>(() => undefined);

/**
 * A page, or a part of one, or a word of why there is none, or what else takes its place then: the gateway may be away, or a newer one with other files.
 * It is loaded again when it is gone to again.
 */
export function page<P extends object>(load: () => Promise<FunctionComponent<P>>, Instead: FunctionComponent<P> = NotLoaded): Page<P> {
  const attempt = () => lazy(() => load().then((found) => ({ default: found }), () => ({ default: Missing as FunctionComponent<P> })));
  let made = attempt();
  function Missing(props: P): ReactNode {
    const redraw = useContext(Redraw);
    useEffect(() => {
      const failed = made;
      const again = (): void => {
        if (made === failed) made = attempt();
      };
      const online = (): void => {
        again();
        redraw();
      };
      window.addEventListener('online', online);
      return () => {
        window.removeEventListener('online', online);
        again();
      };
    }, [redraw]);
    return <Instead {...props} />;
  }
  function Shown(props: P): ReactNode {
    const [, redraw] = useReducer((count: number) => count + 1, 0);
    return <Redraw value={redraw}>{createElement(made as unknown as FunctionComponent<P>, props)}</Redraw>;
  }
  const begin = (): void => void load().catch(() => undefined); // who shows it says so
  return Object.assign(Shown, { begin });
}

/** What is shown until a page is there. */
export function Waiting({ children }: { readonly children: ReactNode }): ReactNode {
  return <Suspense fallback={<Wait />}>{children}</Suspense>;
}

/** In place of what is not known yet. */
export function Wait(): ReactNode {
  return <p className="page-wait">{t.loading}</p>;
}

/** Says that something could not be loaded. */
export function NotLoaded(): ReactNode {
  return (
    <div className="notice" role="alert">
      <p>{t.notLoaded}</p>
      <button type="button" className="button" onClick={() => location.reload()}>
        {t.reload}
      </button>
    </div>
  );
}

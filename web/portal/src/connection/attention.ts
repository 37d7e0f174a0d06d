// Whether anybody looks at the page, as far as a browser tells.

import { useEffect } from 'react';

/** What is told. */
export interface Attentive {
  readonly wake: () => void;
  readonly pause: () => void;
  readonly resume: () => void;
}

/** How long a hidden page keeps its stream, in milliseconds: a glance at another tab is not worth a new one. */
const grace = 3_000;

/**
 * Lets go of the stream while the page is hidden. Over HTTP/1.1 a browser has six connections for all tabs of a gateway, and with
 * the seventh stream nothing of it loads any more. When the page is looked at again, the network is back, or the browser
 * lets it run again, its stream may have died without a word.
 */
export function attend(to: Attentive, page: Document = document, within: Window = window): () => void {
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let paused = false;
  const visible = (): boolean => page.visibilityState === 'visible';
  const pause = (): void => {
    clearTimeout(timer);
    paused = true;
    to.pause();
  };
  const look = (): void => {
    clearTimeout(timer);
    if (!visible()) {
      if (!paused) timer = setTimeout(pause, grace);
      return;
    }
    if (paused) to.resume();
    else to.wake();
    paused = false;
  };
  const { signal } = over;
  page.addEventListener('visibilitychange', look, { signal });
  page.addEventListener('freeze', pause, { signal });
  page.addEventListener('resume', look, { signal });
  within.addEventListener('pagehide', pause, { signal }); // it may come back
  within.addEventListener('pageshow', look, { signal });
  within.addEventListener('online', look, { signal });
  if (!visible()) pause();
  return () => {
    clearTimeout(timer);
    over.abort();
  };
}

export function useAttention(kc: { wake(): void; pause(): void; resume(): void }): void {
  useEffect(() => attend({ wake: () => kc.wake(), pause: () => kc.pause(), resume: () => kc.resume() }), [kc]);
}

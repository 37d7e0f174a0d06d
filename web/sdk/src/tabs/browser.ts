// What tabs use of a browser.

import type { Surroundings, TabLocks } from './group.ts';

interface Page {
  readonly visibilityState?: string;
  addEventListener(type: string, listener: () => void, options: { signal: AbortSignal }): void;
}

/** Undefined where tabs cannot share: Web Locks want a page that came by TLS, or from loopback. */
export function browser(): Surroundings | undefined {
  const { navigator, document, BroadcastChannel, crypto } = globalThis as unknown as {
    navigator?: { locks?: TabLocks };
    document?: Page;
    BroadcastChannel?: typeof globalThis.BroadcastChannel;
    crypto?: { subtle?: unknown };
  };
  const locks = navigator?.locks;
  if (!locks || !BroadcastChannel || !crypto?.subtle) return undefined;
  return {
    locks,
    channel: (name) => new BroadcastChannel(name),
    visible: () => document?.visibilityState !== 'hidden',
    attend: (listener) => {
      const over = new AbortController();
      const { signal } = over;
      const page = globalThis as unknown as Page;
      document?.addEventListener('visibilitychange', () => listener('look'), { signal });
      document?.addEventListener('freeze', () => listener('stop'), { signal });
      document?.addEventListener('resume', () => listener('go'), { signal });
      page.addEventListener('pagehide', () => listener('stop'), { signal });
      page.addEventListener('pageshow', () => listener('go'), { signal });
      page.addEventListener('online', () => listener('look'), { signal });
      return () => over.abort();
    },
  };
}

// Whether anybody looks at the page, as far as a browser tells.

/** What is told; a {@link Kubecast} or a {@link Client}. */
export interface Attentive {
  wake(): void;
  pause(): void;
  resume(): void;
}

/** What becomes of the stream of a page that nobody looks at. */
export interface AttendOptions {
  /** `pause` (the default): it is let go of after three seconds; `stream`: it goes on, for pages that have to tell something while hidden. */
  readonly background?: 'pause' | 'stream' | undefined;
  /** Where there is no page but an app: React Native's `AppState`. One that is `background` is hidden. */
  readonly app?: AppStates | undefined;
}

/** How long a hidden page keeps its stream, in milliseconds: a glance at another tab is not worth a new one. */
const grace = 3_000;

/** As much of React Native's `AppState` as is needed. */
export interface AppStates {
  readonly currentState: string;
  addEventListener(type: 'change', listener: (state: string) => void): { remove(): void };
}

type Listen = (type: string, listener: () => void, options: { signal: AbortSignal }) => void;

/**
 * Lets go of the stream while the page is hidden, and has it looked at when the page is shown again, the network is back, or the
 * browser lets the page run again: it may have died without a word. Over HTTP/1.1 a browser has six connections for all
 * tabs of a gateway, and with the seventh stream nothing of it loads any more. Where there is no page (a worker, Node) it does nothing.
 *
 * Returns what ends it.
 */
export function attend(to: Attentive, { background = 'pause', app }: AttendOptions = {}): () => void {
  const within = globalThis as unknown as { document?: { visibilityState: string; addEventListener: Listen }; addEventListener: Listen };
  const page = within.document;
  if (!page && !app) return () => undefined;
  const over = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  let paused = false;
  let state = app?.currentState;
  const visible = (): boolean => (app ? state !== 'background' : page?.visibilityState === 'visible');
  const pause = (): void => {
    clearTimeout(timer);
    paused = true;
    to.pause();
  };
  const look = (): void => {
    clearTimeout(timer);
    if (!visible() && background === 'pause') {
      if (!paused) timer = setTimeout(pause, grace);
      return;
    }
    if (paused) to.resume();
    else to.wake();
    paused = false;
  };
  const changes = app?.addEventListener('change', (now) => {
    state = now;
    look();
  });
  const { signal } = over;
  page?.addEventListener('visibilitychange', look, { signal });
  page?.addEventListener('freeze', pause, { signal });
  page?.addEventListener('resume', look, { signal });
  if (page) {
    within.addEventListener('pagehide', pause, { signal }); // it may come back
    within.addEventListener('pageshow', look, { signal });
    within.addEventListener('online', look, { signal });
  }
  if (!visible() && background === 'pause') pause();
  return () => {
    clearTimeout(timer);
    changes?.remove();
    over.abort();
  };
}

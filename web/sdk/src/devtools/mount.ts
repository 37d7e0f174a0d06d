// The panel on a page, and off it.

import type { Kubecast } from '../kubecast.ts';
import { Devtools, type DevtoolsOptions } from './devtools.ts';
import { panelOf } from './panel.ts';

/** After how long nobody keeps a stream that is not used any more, in milliseconds: tabs that share one do for two seconds. */
const letGo = 2_200;

/**
 * Shows the devtools of a client until what it returns is called, or the panel is closed. The page's `fetch` is wrapped meanwhile, and a stream
 * that was open before is let go and opened again from its position, so that it is seen. A client that was given a `fetch` of its own needs `tools`,
 * with whose `fetch` it was made.
 */
export function mountDevtools(kc: Kubecast, { tools, parent = document.body, onClose, ...options }: DevtoolsOptions & { tools?: Devtools; parent?: Element; onClose?: () => void } = {}): () => void {
  const seen = tools ?? new Devtools(options);
  const uninstall = tools ? undefined : seen.install();
  const state = kc.inside.client?.state;
  if (!tools && state && state.reason !== 'paused') {
    kc.pause();
    setTimeout(() => whenShown(() => kc.resume()), letGo);
  }
  const before = document.activeElement;
  let open = true;
  const close = (): void => {
    if (!open) return;
    open = false;
    seen.heal();
    uninstall?.();
    panel.remove();
    if (before instanceof HTMLElement) before.focus();
    onClose?.();
  };
  const panel = panelOf(kc, seen, close);
  parent.append(panel);
  panel.focus();
  return close;
}

/** A page that has been hidden meanwhile has let go of its stream for a reason. */
function whenShown(then: () => void): void {
  if (document.visibilityState === 'visible') then();
  else document.addEventListener('visibilitychange', () => whenShown(then), { once: true });
}

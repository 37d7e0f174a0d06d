import { t as pages } from '../pages/texts.ts';
import { stateName } from '../state/texts.ts';
import { parseView } from '../view/view.ts';

/** Of what a saved view is, in few words. */
export function summaryOf(at: string): string {
  const { page, kind, cluster, namespace, state, search } = parseView(at);
  return [kind || pages.titles[page], cluster, namespace, state && stateName(state), search].filter(Boolean).join(' · ');
}

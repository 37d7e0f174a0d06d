// Why pods have written nothing, as far as they say it themselves.

import { sentenceOf } from '../state/ended.ts';
import { stateName } from '../state/texts.ts';
import type { PodRow } from './pod.ts';
import { t } from './texts.ts';

/** Why nothing was written. */
export interface Unwritten {
  readonly text: string;
  /** The cluster's words for it, which are in English. */
  readonly why?: string;
}

/** Of pods that are there; undefined: they run, and may write at any time. */
export function unwrittenBy(pods: readonly Pick<PodRow, 'state' | 'phase' | 'detail' | 'message' | 'end'>[]): Unwritten | undefined {
  const ended = pods.find(({ end, phase }) => end && phase !== 'Running')?.end;
  if (ended) return { text: t.unwritten.ended(sentenceOf(ended)) };
  const waits = pods.find(({ phase }) => phase === 'Pending' || phase === 'Waiting');
  if (waits && !pods.some(({ phase }) => phase === 'Running')) return { text: t.unwritten.waits(waits.detail || (waits.state === waits.phase ? '' : stateName(waits.state))), why: waits.message };
  return pods.length > 0 && pods.every(({ phase }) => phase === 'Succeeded' || phase === 'Failed') ? { text: t.unwritten.over } : undefined;
}

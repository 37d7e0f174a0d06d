// Why pods have written nothing, as far as they say it themselves.

import { sentenceOf } from '../state/ended.ts';
import type { PodRow } from './pod.ts';
import { t } from './texts.ts';

/** Of pods that are there; empty: they run, and may write at any time. */
export function unwrittenBy(pods: readonly Pick<PodRow, 'state' | 'detail' | 'message' | 'end'>[]): string {
  const ended = pods.find(({ end, state }) => end && state !== 'Running')?.end;
  if (ended) return t.unwritten.ended(sentenceOf(ended));
  const waits = pods.find(({ state }) => state === 'Pending' || state === 'Waiting');
  if (waits && !pods.some(({ state }) => state === 'Running')) return t.unwritten.waits(waits.detail, waits.message);
  return pods.length > 0 && pods.every(({ state }) => state === 'Succeeded' || state === 'Failed') ? t.unwritten.over : '';
}

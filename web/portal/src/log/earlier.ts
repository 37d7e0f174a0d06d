// Lines of before those that a log's stream begins with, which the gateway reads when somebody wants them.

import { pathOf, type KubeObject, type LogEntry, type Resource } from '@kubecast/sdk';
import { useState } from 'react';
import { base } from '../session/base.ts';
import { t } from './texts.ts';

/** So many come at once. */
const step = 1_000;
/** So many of a browser's memory has room for; all are in what is downloaded. */
const most = 50_000;

interface Earlier {
  /** The number of the line behind them. */
  readonly before: number;
  readonly entries: readonly LogEntry[];
  /** How many there are before these. */
  readonly left: number;
}

type Item = Omit<LogEntry, 'number'>;
interface Answer {
  readonly items: readonly Item[];
  readonly index?: number;
  /** Why it has less than was asked for: `size` of the answer, or what the gateway reads for a question. */
  readonly stopped?: string;
}

export interface UseEarlier {
  /** With those that were loaded in front. */
  readonly all: readonly LogEntry[];
  /** How many more there are; undefined: that is not known yet. */
  readonly left: number | undefined;
  readonly trouble: string;
  readonly load: () => void;
}

/** `container` is the one whose log it is: of several there is no order that a page could continue. */
export function useEarlier(of: Resource<KubeObject>, namespace: string, name: string, container: string | undefined, token: string | undefined, tail: readonly LogEntry[]): UseEarlier {
  const [kept, setKept] = useState<Earlier>();
  const [state, setState] = useState<'' | 'loading' | { readonly said: string }>('');
  const at = tail.findIndex((entry) => entry.type === 'line');
  const line = tail[at];
  // The oldest of the stream's are let go after a while: then what was loaded would not join.
  const earlier = kept && line?.number === kept.before ? kept : undefined;

  const ask = async (more: string): Promise<Answer> => {
    const path = `${base}/logs${pathOf(of, { namespace, name })}?view=lines${container ? `&container=${encodeURIComponent(container)}` : ''}${more}`;
    const response = await fetch(path, { headers: { Accept: 'application/json', ...(token !== undefined && { Authorization: `Bearer ${token}` }) }, cache: 'no-store' });
    const said = (await response.json().catch(() => ({}))) as Answer & { readonly detail?: string };
    if (!response.ok) throw new Error(said.detail ?? `HTTP ${response.status}`);
    return said;
  };
  const read = async (): Promise<void> => {
    if (line?.type !== 'line') return;
    // Others may have the time of the first line: its place is found by the next one that has another.
    const next = tail.findIndex((entry, n) => n > at && entry.type === 'line' && entry.time !== line.time);
    const known = tail[next];
    const time = `&time=${encodeURIComponent(known?.type === 'line' ? known.time : line.time)}`;
    const placeOfFirst = ({ index = 0, stopped }: Answer): number => {
      if (stopped) throw new Error(t.tooLong);
      return Math.max(0, index - (known ? next - at : 0));
    };
    const loaded = earlier?.entries ?? [];
    const end = earlier?.left ?? placeOfFirst(await ask(`&limit=0${time}`));
    let wanted = Math.min(end, step);
    const stretch = (): Promise<Answer> | Answer => (wanted > 0 ? ask(`&from=${end - wanted}&limit=${wanted}${time}`) : { items: [] });
    let answer = await stretch();
    // Where not all have room in an answer it has the first of them; the last ones are those that join.
    while (answer.stopped && answer.items.length < wanted) {
      if (answer.stopped !== 'size' || wanted === 1) throw new Error(t.tooLong);
      wanted = Math.ceil(wanted / 2);
      answer = await stretch();
    }
    // Lines were rotated away meanwhile, or came in between: all places are others.
    if (wanted > 0 && placeOfFirst(answer) !== end + loaded.length) {
      setKept(undefined);
      return;
    }
    const newest = loaded[0]?.number ?? line.number;
    const entries = answer.items.map((item, n) => ({ ...item, number: newest - answer.items.length + n }) as LogEntry);
    setKept({ before: line.number, entries: [...entries, ...loaded], left: loaded.length + entries.length >= most ? 0 : end - answer.items.length });
  };
  return {
    all: earlier ? [...earlier.entries, ...tail.slice(at)] : tail,
    left: line === undefined || state === 'loading' ? 0 : earlier?.left,
    trouble: typeof state === 'object' ? state.said : '',
    load: () => {
      setState('loading');
      read().then(
        () => setState(''),
        (failure: unknown) => setState({ said: failure instanceof Error ? failure.message : String(failure) }),
      );
    },
  };
}

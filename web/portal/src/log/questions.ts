// Questions to the gateway about a log that it reads from its first line on; see "Questions" in wire.md.

import { pathOf, type KubeObject, type LogEntry, type Resource } from '@kubecast/sdk';
import { base } from '../session/base.ts';
import { t as log } from './texts.ts';

/** How long the gateway may take, which reads a log from its first line on, in milliseconds. A connection may be dead without a word. */
const answerTime = 60_000;

export type Item = Omit<LogEntry, 'number'>;

/** What is answered, of either view. */
export interface Answer {
  readonly items?: readonly Item[];
  readonly matches?: readonly { readonly index: number; readonly item: Item }[];
  readonly index?: number;
  readonly complete?: boolean;
  /** How many items were looked at. */
  readonly count?: number;
  /** Why it has less than was asked for: `size` of the answer, or what the gateway reads for a question. */
  readonly stopped?: string;
}

export type Ask = (query: Readonly<Record<string, string | number>>, signal: AbortSignal) => Promise<Answer>;

/** Asks about one log. Rejects with the gateway's own words. */
export function askAbout(of: Resource<KubeObject>, namespace: string, name: string, cluster: string, token: string | undefined): Ask {
  return async (query, signal) => {
    const path = `${base}/logs${pathOf(of, { namespace, name, cluster })}?${new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]))}`;
    signal.throwIfAborted();
    const limit = new AbortController();
    const end = (): void => limit.abort(signal.reason);
    signal.addEventListener('abort', end);
    const timer = setTimeout(() => limit.abort(new Error(log.noAnswer)), answerTime);
    try {
      const response = await fetch(path, { headers: { Accept: 'application/json', ...(token !== undefined && { Authorization: `Bearer ${token}` }) }, cache: 'no-store', signal: limit.signal });
      const said = (await response.json().catch(() => ({}))) as Answer & { readonly detail?: string; readonly message?: string };
      limit.signal.throwIfAborted();
      if (!response.ok) throw new Error(said.detail ?? said.message ?? `HTTP ${response.status}`);
      return said;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
    }
  };
}

/** What a failure says. */
export const saidBy = (failure: unknown): string => (failure instanceof Error ? failure.message : String(failure));

/** Nobody waits for the answer any more: something else is asked. */
export const isAbort = (failure: unknown): boolean => failure instanceof Error && failure.name === 'AbortError';

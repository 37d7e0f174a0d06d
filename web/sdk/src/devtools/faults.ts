// What can be made to go wrong. Only the gateway's answers are touched, never what the page asks.

/**
 * - `delay`: each answer, and each part of a stream, comes later
 * - `half-open`: streams stay open, and nothing more comes on them, not even later
 * - `429`: the gateway refuses with `Retry-After: 1`
 * - `stale`: the gateway says that its own watch is lost
 * - `offline`: streams break, and no request gets anywhere
 */
export type Lasting = 'delay' | 'half-open' | '429' | 'stale' | 'offline';

/**
 * - `cut`: all streams break
 * - `410`: all streams break, and the next has no use for the position: each watch is told `reset`, and a snapshot
 */
export type Once = 'cut' | '410';

/** All that lasts until it is turned off, in the order in which it is offered. */
export const lasting: readonly Lasting[] = ['delay', 'half-open', '429', 'stale', 'offline'];

/** What a broken connection is to a page. */
export const broken = (): TypeError => new TypeError('network error (a fault of the devtools)');

/** A `stale`, `live` or `reset` for each watch of a stream. */
export function told(url: URL, event: 'stale' | 'live' | 'reset'): Uint8Array<ArrayBuffer> {
  const said = event === 'reset' ? { reason: 'expired' } : { since: new Date().toISOString(), reason: event === 'live' ? 'live' : 'unreachable' };
  // On `/stream` each parameter that is a path names a watch; another stream is one watch without a name.
  const names = url.pathname.endsWith('/stream') ? [...url.searchParams].filter(([, value]) => value.startsWith('/')).map(([name]) => `${name}.`) : [''];
  return new TextEncoder().encode(names.map((name) => `event: ${name}${event}\ndata: ${JSON.stringify(said)}\n\n`).join(''));
}

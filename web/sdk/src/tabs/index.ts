/**
 * One event stream for all tabs of a browser: `createKubecast({ share: tabs() })`. One tab leads: it has the stream, and tells the others
 * what came. When it is closed, dies, is frozen, or nobody looks at it, another goes on from where it was.
 *
 * @packageDocumentation
 */

import type { Share } from '../clientoptions.ts';
import type { TokenSource } from '../credentials.ts';
import { connect, type Connect, type ConnectionRequest, type Stream } from '../connection.ts';
import { Lost } from '../lost.ts';
import { Group, type Surroundings } from './group.ts';
import { openAlone } from './alone.ts';
import { TabStream } from './tabStream.ts';
import { placeOf } from './protocol.ts';
import { browser } from './browser.ts';

export type { Channel, Surroundings, TabLocks } from './group.ts';

/** Of what tabs say to each other. Those who say it otherwise, as after an update, have a stream of their own. */
const protocol = 3;

/** With whom a tab shares. */
export interface TabsOptions {
  /**
   * Who the caller is, where that is not in the token. Tabs share with those of the same caller only. By default it is what the token
   * says of them, but for its times; for a token that cannot be read, the token itself; for a session, its user.
   */
  readonly caller?: string | undefined;
  /** For tests. */
  readonly surroundings?: Surroundings | undefined;
}

/** One for a page: it may be given to several clients. */
export function tabs({ caller: named = '', surroundings = browser() }: TabsOptions = {}): Share {
  const groups = new Map<string, Group>();
  const random = (): string => Array.from(crypto.getRandomValues(new Uint32Array(2)), (n) => n.toString(36)).join('');
  return (options): Connect =>
    async (request, signal) => {
      const { token, session, heartbeat, openTimeout, fetch, random: spread } = options;
      const [gateway = '', query] = request.url.split('/stream?', 2);
      if (query === undefined) return connect(request, signal);
      const alone = (): Promise<Stream> => openAlone({ ...request, lastEventId: placeOf(request.lastEventId) ? '' : request.lastEventId }, signal);
      if (!surroundings) return alone();
      const caller = await callerOf(request, session).catch(() => undefined);
      if (caller === undefined) return alone();
      const name = `kubecast ${protocol} ${gateway} ${named} ${caller}`;
      if (signal.aborted) throw new Lost('ended', '');
      const client = { token, session, heartbeat, openTimeout, fetch, random: spread };
      const group = groups.get(name) ?? new Group(name, surroundings, { gateway, client }, random);
      groups.set(name, group);
      const paths = [...new URLSearchParams(query)].filter(([own]) => own !== 'heartbeat');
      const stream: TabStream = new TabStream(random(), paths, request, options, () => {
        signal.removeEventListener('abort', stop);
        clearTimeout(timer);
        group.leave(stream);
      });
      const stop = (): void => stream.close();
      signal.addEventListener('abort', stop);
      const timer = setTimeout(() => stream.fail(new Lost('timeout', `no answer within ${request.openTimeout / 1_000} s`)), request.openTimeout);
      group.join(stream);
      try {
        const room = await stream.opened;
        clearTimeout(timer);
        if (room) return stream;
      } catch (error) {
        stream.close();
        throw error;
      }
      stream.close();
      return alone();
    };
}

/** What tells one caller from another, without the token. */
async function callerOf({ token }: ConnectionRequest, session: TokenSource | undefined): Promise<string> {
  // A session's name ends with its end, which each renewal moves.
  const said = token === undefined ? (await session?.('connect'))?.replace(/ until \d*$/, '') : (claimsOf(token) ?? token);
  if (said === undefined) return '';
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(said));
  return Array.from(new Uint8Array(digest), (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const passing = /^(exp|iat|nbf|jti|auth_time|nonce|at_hash|sid)$/;

function claimsOf(token: string): string | undefined {
  try {
    const [, claims = ''] = token.split('.');
    const read: unknown = JSON.parse(atob(claims.replaceAll('-', '+').replaceAll('_', '/')));
    return JSON.stringify(read, (key, value: unknown) => (passing.test(key) ? undefined : value));
  } catch {
    return undefined;
  }
}

// The session of this browser with the gateway, by its cookie. All tabs share it.

import { Session, type TokenSource } from '@kubecast/sdk';
import { begun } from '../early/begun.ts';
import { base, ownName } from './base.ts';

export const browserSession = new Session({
  gateway: base,
  fetch: async (input, init) => (typeof input === 'string' && init?.method === 'GET' ? await begun(input.slice(base.length)) : undefined) ?? fetch(input, init),
});

const channel = ownName('kubecast.session');
const users = ownName('kubecast.session.user');

/** The token that became the session, as long as this page is not loaded anew and nobody signs out. */
export class Spare {
  #token: string | undefined;

  constructor(token: string) {
    this.#token = token;
  }

  get token(): string | undefined {
    return this.#token;
  }

  forget(): void {
    this.#token = undefined;
  }
}

/**
 * Renews the session. If somebody else has signed in meanwhile, in another tab, what is on screen is not his: load it anew. A gateway
 * without a lasting key has forgotten its sessions when it is started again: then the token is exchanged once more.
 */
export function sourceOf(session: Session, reload: () => void, spare?: Spare): TokenSource {
  return async (reason) => {
    const before = session.info.username;
    let name = await session.source(reason);
    const anew = (): string => `${session.info.username ?? ''} until ${Date.now()}`; // another one, though of the same user and until the same time
    // An end that comes near cannot be put off with the token that ends then, too.
    if (name === undefined && spare?.token !== undefined && reason !== 'expiring') {
      const there = await exchange(spare.token, session);
      if (spare.token === undefined) {
        if (there !== false) await session.end().catch(() => undefined); // somebody has signed out meanwhile
        return undefined;
      }
      if (there === undefined) throw new Error('the token cannot be exchanged now'); // and is asked for again
      if (there) {
        tellUser(session);
        name = anew();
      }
    } else if (name === undefined && reason === 'refused' && session.info.username !== undefined) {
      name = anew(); // another tab has exchanged its token meanwhile
    }
    const now = session.info.username;
    if (before !== undefined && now !== undefined && now !== before) reload();
    return name;
  };
}

/**
 * Exchanges a token for the browser's session: it is of all tabs, and no script can read it. Returns whether the browser has it now: a gateway
 * may refuse it, and browsers keep none of a page that came without TLS, unless from the same machine. Undefined: that cannot be found out now.
 */
export async function exchange(token: string, session: Session = browserSession): Promise<boolean | undefined> {
  let begun = false;
  try {
    if ((await session.look()).username !== undefined) return false; // it does not take the place of a session that there is, whosever that is
    const init: RequestInit = { method: 'POST', headers: { Authorization: `Bearer ${token}` }, cache: 'no-store', signal: AbortSignal.timeout(10_000) };
    const answer = await fetch(`${base}/auth/session`, init);
    if (answer.status >= 500 || answer.status === 429) return undefined;
    if (!answer.ok) return false;
    begun = true;
    const { username } = (await answer.json()) as { readonly username?: unknown };
    const { username: kept } = await session.look();
    return kept !== undefined && kept === username;
  } catch {
    if (begun) await session.end().catch(() => undefined); // the browser may have it, and nobody would end it
    return undefined; // the token is as good as before
  }
}

/** Signs out here, at the provider if it has a session of its own, and in the other tabs. */
export async function endBrowserSession(session: Session = browserSession): Promise<void> {
  tell(channel, 'ending');
  const location = await session.end();
  tell(channel, 'ended');
  // Replaced, so that the provider's address, which holds what names the session, is not in the history.
  if (location !== undefined) window.location.replace(location);
}

/** Tells when another tab has signed out. From the moment at which it begins to, a spare token begins no session any more. Returns how to stop. */
export function onBrowserSessionEnd(listener: () => void, spare?: Spare): () => void {
  if (typeof BroadcastChannel === 'undefined') return () => undefined;
  const others = new BroadcastChannel(channel);
  others.onmessage = ({ data }: MessageEvent<unknown>) => {
    spare?.forget();
    if (data === 'ended') listener();
  };
  return () => others.close();
}

/** By which this page hears of who signs in. What it says itself by that, it does not hear. */
let signIns: BroadcastChannel | undefined;

/** Says to the other tabs whose session the browser has now. */
export function tellUser(session: Session = browserSession): void {
  const { username } = session.info;
  if (username === undefined) return;
  if (signIns && session === browserSession) signIns.postMessage(username);
  else tell(users, username);
}

function tell(name: string, what: string): void {
  if (typeof BroadcastChannel === 'undefined') return;
  const others = new BroadcastChannel(name);
  others.postMessage(what);
  others.close();
}

/**
 * Tells when somebody else has signed in in another tab: what is on screen is not theirs, and whatever this page asks for from now on is
 * answered for them. Returns how to stop.
 */
export function onOtherUser(listener: () => void, session: Session = browserSession): () => void {
  if (typeof BroadcastChannel === 'undefined') return () => undefined;
  const others = new BroadcastChannel(users);
  others.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data !== session.info.username) listener();
  };
  return () => others.close();
}

/** Tells when somebody has signed in in another tab. Returns how to stop. */
export function onSignIn(listener: () => void): () => void {
  if (typeof BroadcastChannel === 'undefined') return () => undefined;
  const others = (signIns = new BroadcastChannel(users));
  others.onmessage = () => listener();
  return () => {
    if (signIns === others) signIns = undefined;
    others.close();
  };
}

/** Where one signs in, and comes back from to what is on screen now. */
export function loginAddress(session: Session = browserSession, at: Pick<Location, 'pathname' | 'hash'> = location): string {
  const here = at.pathname + at.hash;
  // What is longer than the gateway keeps is not worth failing for.
  return session.loginAddress(here.length <= 1_000 && /^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(here) ? here : `${base}/`);
}

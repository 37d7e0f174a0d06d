// The session of this browser with the gateway, by its cookie. All tabs share it.

import { Session, type TokenSource } from '@kubecast/sdk';
import { base, ownName } from './base.ts';

export const browserSession = new Session({ gateway: base });

const channel = ownName('kubecast.session');
const users = ownName('kubecast.session.user');

/** Renews the session. If somebody else has signed in meanwhile, in another tab, what is on screen is not his: load it anew. */
export function sourceOf(session: Session, reload: () => void): TokenSource {
  return async (reason) => {
    const before = session.info.username;
    const name = await session.source(reason);
    const now = session.info.username;
    if (before !== undefined && now !== undefined && now !== before) reload();
    return name;
  };
}

/** Signs out here, at the provider if it has a session of its own, and in the other tabs. */
export async function endBrowserSession(session: Session = browserSession): Promise<void> {
  const location = await session.end();
  if (typeof BroadcastChannel !== 'undefined') {
    const others = new BroadcastChannel(channel);
    others.postMessage('ended');
    others.close();
  }
  // Replaced, so that the provider's address, which holds what names the session, is not in the history.
  if (location !== undefined) window.location.replace(location);
}

/** Tells when another tab has signed out. Returns how to stop. */
export function onBrowserSessionEnd(listener: () => void): () => void {
  if (typeof BroadcastChannel === 'undefined') return () => undefined;
  const others = new BroadcastChannel(channel);
  others.onmessage = () => listener();
  return () => others.close();
}

/** Says to the other tabs whose session the browser has now. */
export function tellUser(session: Session = browserSession): void {
  if (typeof BroadcastChannel === 'undefined' || session.info.username === undefined) return;
  const others = new BroadcastChannel(users);
  others.postMessage(session.info.username);
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
  const others = new BroadcastChannel(users);
  others.onmessage = () => listener();
  return () => others.close();
}

/** Where one signs in, and comes back from to what is on screen now. */
export function loginAddress(session: Session = browserSession, at: Pick<Location, 'pathname' | 'hash'> = location): string {
  const here = at.pathname + at.hash;
  // What is longer than the gateway keeps is not worth failing for.
  return session.loginAddress(here.length <= 1_000 && /^\/(?!\/)[\x21-\x5b\x5d-\x7e]*$/.test(here) ? here : `${base}/`);
}

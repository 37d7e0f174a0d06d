// The token of whoever is signed in, where the browser has no session for it (browser.ts). It lives in this tab's sessionStorage and nowhere else.

import { ownName } from './base.ts';

const key = ownName('kubecast.token');

/** What the token says of itself. Only for display: whether it is true is the gateway's to decide. */
export interface Claims {
  readonly user: string;
  /** Milliseconds since the epoch. */
  readonly expiresAt: number | undefined;
}

export function storedToken(storage: Storage = sessionStorage): string | undefined {
  return storage.getItem(key) ?? undefined;
}

export function storeToken(token: string | undefined, storage: Storage = sessionStorage): void {
  if (token === undefined) storage.removeItem(key);
  else storage.setItem(key, token);
}

/** A token as it was pasted: line breaks of a terminal, and the header's own word, are no part of it. */
export function cleanToken(pasted: string): string | undefined {
  const token = pasted.replace(/\s+/g, ' ').replace(/^ ?Bearer /i, '').replaceAll(' ', '');
  return /^[\x21-\x7e]+$/.test(token) ? token : undefined;
}

/**
 * Takes a token out of the address's fragment (`#token=…`), where a link from a terminal puts it because
 * fragments are not sent to any server. It must not stay: addresses are shared, bookmarked and kept.
 */
export function takeTokenFromAddress(
  address: Pick<Location, 'hash' | 'pathname' | 'search'> = location,
  replace: (url: string) => void = (url) => history.replaceState(null, '', url),
): string | undefined {
  const fragment = new URLSearchParams(address.hash.slice(1));
  const token = fragment.get('token');
  if (token === null) return undefined;
  replace(address.pathname + address.search);
  return cleanToken(token);
}

export function claimsOf(token: string): Claims {
  const nothing: Claims = { user: '', expiresAt: undefined };
  try {
    const payload = (token.split('.')[1] ?? '').replaceAll('-', '+').replaceAll('_', '/');
    const bytes = Uint8Array.from(atob(payload), (char) => char.charCodeAt(0));
    const claims: unknown = JSON.parse(new TextDecoder().decode(bytes));
    if (typeof claims !== 'object' || claims === null) return nothing;
    const { sub, exp } = claims as { sub?: unknown; exp?: unknown };
    return {
      user: typeof sub === 'string' ? sub : '',
      expiresAt: typeof exp === 'number' ? exp * 1_000 : undefined,
    };
  } catch {
    return nothing; // not a JWT; the gateway will say so
  }
}

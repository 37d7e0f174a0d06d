// Browsers' sessions, each a cookie in place of a token. They end with the token, and with the mock.

import type { MockRequest, MockResponse } from './memory.ts';
import { BadQuery } from './query.ts';
import { answer } from './reply.ts';

const cookieName = '__Host-kubecast';
/** A session of a token that has no end, in milliseconds. */
const lasts = 12 * 3_600_000;

/** Who begins one. */
interface Begun {
  readonly token: string;
  readonly username: string;
  readonly user: { readonly expiresAt?: number | undefined };
}

interface Kept {
  readonly token: string;
  readonly expiresAt: number;
}

export class Sessions {
  readonly #kept = new Map<string, Kept>();
  readonly #origins: () => ReadonlySet<string> | undefined;

  /** The origins of pages elsewhere that may use a browser's session. */
  constructor(origins: () => ReadonlySet<string> | undefined) {
    this.#origins = origins;
  }

  /** Whose session the browser has; with a token it gets one, and it gives it up. `users` names whose token it is, as long as that is good. */
  answer(request: MockRequest, response: MockResponse, path: string, caller: () => Begun, users: (token: string) => string | undefined): void {
    const tell = (username: string, expiresAt: number, headers = {}): void => answer(response, 200, { login: false, username, expiresAt: new Date(expiresAt).toISOString(), renewable: false }, headers);
    refuseForeign(request, this.#origins());
    if (path.endsWith('/logout')) {
      response.writeHead(204, { 'Set-Cookie': this.#end(request), 'Cache-Control': 'no-store' }).end();
    } else if (request.method === 'POST') {
      if (request.headers.authorization === undefined) throw new BadQuery('this session cannot be renewed', 401);
      const { token, user, username } = caller();
      const { cookie, expiresAt } = this.#begin(token, user.expiresAt);
      tell(username, expiresAt, { 'Set-Cookie': cookie });
    } else {
      const kept = this.of(request);
      const username = kept && users(kept.token);
      if (kept && username !== undefined) tell(username, kept.expiresAt);
      else answer(response, 200, { login: false, renewable: false });
    }
  }

  #begin(token: string, end: number | undefined): { readonly cookie: string; readonly expiresAt: number } {
    const id = crypto.randomUUID();
    const expiresAt = end ?? Date.now() + lasts;
    this.#kept.set(id, { token, expiresAt });
    return { cookie: cookieOf(id, expiresAt), expiresAt };
  }

  /** The session that a request brings; undefined: it has no cookie, or none that counts. Only pages of the mock's own origin, and of those that are named, may use it. */
  of(request: MockRequest): Kept | undefined {
    const id = idIn(request);
    if (id === undefined) return undefined;
    refuseForeign(request, this.#origins());
    const kept = this.#kept.get(id);
    return kept && kept.expiresAt > Date.now() ? kept : undefined;
  }

  /** The gateway keeps none, and so a copy of its cookie counts for longer. */
  #end(request: MockRequest): string {
    this.#kept.delete(idIn(request) ?? '');
    return cookieOf('', 0);
  }
}

/** Undefined also where there are two: then a stranger has set one of them. */
function idIn({ headers }: MockRequest): string | undefined {
  const cookies = String(headers.cookie ?? '').split(/;\s*/).filter((one) => one.startsWith(`${cookieName}=`));
  return cookies.length === 1 ? cookies[0]?.slice(cookieName.length + 1) : undefined;
}

/** A page of another origin may send the browser's cookies. */
function refuseForeign({ headers }: MockRequest, origins: ReadonlySet<string> | undefined): void {
  const { origin, host } = headers;
  if (origin !== undefined && host !== undefined && String(origin).replace(/^https?:\/\//, '') !== host && !origins?.has(String(origin))) throw new BadQuery('this page may not use the session', 403);
}

const cookieOf = (id: string, expiresAt: number): string =>
  `${cookieName}=${id}; Path=/; Max-Age=${Math.max(0, Math.floor((expiresAt - Date.now()) / 1_000))}; Expires=${new Date(expiresAt).toUTCString()}; HttpOnly; Secure; SameSite=Strict`;

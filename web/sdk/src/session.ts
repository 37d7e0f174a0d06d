// The browser's session with the gateway: a cookie that no script can read. Finds out whether there is one, renews it
// before it ends, and ends it.

import { sleep, within } from './deadline.ts';
import { isJsonObject } from './object.ts';
import type { TokenReason } from './credentials.ts';

/** A session of the browser, kept in a cookie. */
export interface SessionInfo {
  /** One can sign in at {@link Session.loginAddress}. */
  readonly login: boolean;
  /** Whose session it is; undefined: there is no good one. */
  readonly username: string | undefined;
  /** When it ends unless it is renewed, in milliseconds since the epoch. */
  readonly expiresAt: number | undefined;
  /** It can be renewed, also when it has ended. */
  readonly renewable: boolean;
}

/** Whose session, and how pages agree about it. */
export interface SessionOptions {
  /** Where the gateway is, without a slash at its end: its origin, and the path below which it stands, as `/tools/kubecast`. Empty: the root of the page's own origin. */
  readonly gateway?: string | undefined;
  readonly fetch?: typeof fetch | undefined;
  /** Lets pages of one browser go one after the other; by default the browser's own. */
  readonly locks?: Locks | undefined;
}

/** As much of LockManager as is needed. */
export interface Locks {
  request<T>(name: string, callback: () => Promise<T>): Promise<T>;
}

/** How long the gateway may take to answer, in milliseconds. */
const answerTime = 10_000;
/** A page that holds the lock for longer than its requests can take was stopped by its browser. */
const lockTime = 3 * answerTime;

const none: SessionInfo = { login: false, username: undefined, expiresAt: undefined, renewable: false };

/**
 * ```ts
 * const session = new Session();
 * if (await session.open()) createKubecast({ session: session.source });
 * else location.assign(session.loginAddress('/#jobs'));
 * ```
 */
export class Session {
  readonly #gateway: string;
  readonly #fetch: typeof fetch;
  readonly #locks: Locks | undefined;
  #info: SessionInfo = none;
  #renewing: Promise<string | undefined> | undefined;

  constructor(options: SessionOptions = {}) {
    this.#gateway = options.gateway ?? '';
    this.#fetch = options.fetch ?? ((input, init) => globalThis.fetch(input, init));
    this.#locks = options.locks ?? (globalThis.navigator as { locks?: Locks } | undefined)?.locks;
  }

  /** What was last known. */
  get info(): SessionInfo {
    return this.#info;
  }

  /** Asks the gateway. Rejects if it cannot be reached; one without sessions is told apart from that. */
  async look(): Promise<SessionInfo> {
    const response = await this.#request('GET', '/auth/session');
    if (response.status >= 500 || response.status === 429) throw new Error(`HTTP ${response.status}`);
    this.#info = response.ok ? readInfo(await bodyOf(response)) : none;
    return this.#info;
  }

  /** Whether there is a session, after it was renewed if need be. Rejects if that cannot be found out now. */
  async open(): Promise<boolean> {
    const info = await this.look();
    if (info.username !== undefined) return true;
    return info.renewable && (await this.#renew()) !== undefined;
  }

  /** Where a browser goes to sign in, and comes back from to a path of the gateway's host, with its fragment; by default to the portal. */
  loginAddress(returnTo?: string): string {
    return `${this.#gateway}/auth/login${returnTo === undefined ? '' : `?${new URLSearchParams({ returnTo }).toString()}`}`;
  }

  /**
   * For the option `session` of a client or of {@link createKubecast}: renews the session before the stream ends for want of one.
   * Rejects while the gateway or the provider is away, so that it is asked again.
   */
  readonly source = (reason: TokenReason): Promise<string | undefined> => {
    const name = nameOf(this.#info);
    if (reason === 'connect' && name !== undefined) return Promise.resolve(name);
    return this.#renew();
  };

  /**
   * Ends the session. Returns where the browser goes to end that at the provider, too, if it has one. Waits for a page that
   * renews it just now, whose answer would bring it back.
   */
  end(): Promise<string | undefined> {
    return this.#exclusively(async () => {
      const response = await this.#request('POST', '/auth/logout');
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      this.#info = { ...none, login: this.#info.login };
      if (response.status === 204) return undefined;
      const body = await bodyOf(response);
      return isJsonObject(body) && typeof body.location === 'string' ? body.location : undefined;
    });
  }

  /** What tells the session from the one before; undefined: the user must sign in. Callers at once share one renewal. */
  #renew(): Promise<string | undefined> {
    this.#renewing ??= this.#exclusively(() => this.#renewNow()).finally(() => (this.#renewing = undefined));
    return this.#renewing;
  }

  async #exclusively<T>(what: () => Promise<T>): Promise<T> {
    if (!this.#locks) return what();
    const turn = new AbortController();
    const gone = new AbortController();
    const locked = this.#locks.request(`kubecast session${this.#gateway && `@${this.#gateway}`}`, async () => {
      turn.abort();
      return gone.signal.aborted ? undefined : { result: await what() };
    });
    await Promise.race([sleep(lockTime, turn.signal), locked.catch(() => undefined)]);
    if (turn.signal.aborted) {
      const done = await locked;
      if (done) return done.result;
    }
    // Two pages that renew at once are no harm to the gateway; one that waits for ever is to its user.
    gone.abort();
    turn.abort();
    return what();
  }

  async #renewNow(): Promise<string | undefined> {
    const before = this.#info;
    // Another page of this browser may have renewed it while this one waited.
    const now = await this.look();
    if (now.username !== undefined && nameOf(now) !== nameOf(before)) return nameOf(now);
    if (!now.renewable) return undefined;
    const response = await this.#request('POST', '/auth/session');
    if (response.status === 401 || response.status === 403 || response.status === 404) return undefined;
    if (!response.ok) throw new Error(`the session cannot be renewed now: HTTP ${response.status}`);
    this.#info = readInfo(await bodyOf(response));
    return nameOf(this.#info);
  }

  #request(method: string, path: string): Promise<Response> {
    // A gateway elsewhere is asked with its cookie, too, if it is of the same site.
    const init: RequestInit = { method, credentials: 'include', cache: 'no-store' };
    return within(answerTime, async (signal) => {
      const response = await this.#fetch(this.#gateway + path, { ...init, signal });
      const body = await response.arrayBuffer(); // it may stall as well
      return new Response(body.byteLength > 0 ? body : null, response);
    });
  }
}

function nameOf(info: SessionInfo): string | undefined {
  return info.username === undefined ? undefined : `${info.username} until ${info.expiresAt ?? ''}`;
}

async function bodyOf(response: Response): Promise<unknown> {
  try {
    return await response.json();
  } catch {
    return undefined; // what is no JSON is not the gateway's
  }
}

function readInfo(body: unknown): SessionInfo {
  if (!isJsonObject(body)) return none;
  const expiresAt = typeof body.expiresAt === 'string' ? Date.parse(body.expiresAt) : NaN;
  return {
    login: body.login === true,
    username: typeof body.username === 'string' && body.username !== '' ? body.username : undefined,
    expiresAt: Number.isNaN(expiresAt) ? undefined : expiresAt,
    renewable: body.renewable === true,
  };
}

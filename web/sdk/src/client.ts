// Keeps one event stream going: reconnects, resumes, renews the token, and says how it stands.

import { backoff } from './backoff.ts';
import { Connection, Lost, Refused } from './connection.ts';
import { CallbackFailed, endOf, Goodbye, StartedOver, TokenFailed, type End } from './end.ts';
import { decodeFrame, type StreamEvent } from './events.ts';
import type { Frame } from './parser.ts';
import { isFinal, type ConnectionState, type Phase } from './state.ts';

/**
 * Why a token is asked for. `connect`: an attempt begins, a token at hand will do; `expiring`: the one in
 * use ends soon; `refused`: the server did not accept the one in use. For the last two a token that is
 * not new is of no use, and undefined says that there is none.
 */
export type TokenReason = 'connect' | 'expiring' | 'refused';

export type TokenSource = (reason: TokenReason) => string | undefined | Promise<string | undefined>;

export interface ClientOptions {
  readonly url: string;
  readonly onEvent: (event: StreamEvent) => void;
  readonly onState?: ((state: ConnectionState) => void) | undefined;
  /** A stream is open, before its first event. `resumed`: from a position, so without a snapshot. */
  readonly onOpen?: ((resumed: boolean) => void) | undefined;
  /** Without it requests carry the browser's cookie, or nothing. */
  readonly token?: TokenSource | undefined;
  /**
   * As `token`, for the browser's cookie: what it returns is not sent, but tells one session from the next, and undefined
   * says that there is none. Without effect beside `token`. See {@link Session.source}.
   */
  readonly session?: TokenSource | undefined;
  readonly lastEventId?: string | undefined;
  /** The longest pause the server leaves between two bytes, in milliseconds; 2.5 times that is death. */
  readonly heartbeat?: number | undefined;
  /** How long an attempt may wait for the response's head, in milliseconds. */
  readonly openTimeout?: number | undefined;
  readonly signal?: AbortSignal | undefined;
  readonly fetch?: typeof fetch | undefined;
  readonly random?: (() => number) | undefined;
}

export class Client {
  readonly #options: ClientOptions;
  readonly #abort = new AbortController();
  #state: ConnectionState;
  #lastEventId: string;
  #connection: Connection | undefined;
  /** The watches whose data is old, by the gateway's own word. */
  readonly #stale = new Map<string, { since: number; reason: string }>();
  #retry: number | undefined;
  #failures = 0;
  #delivered = false;
  #startOver = false;
  #wake: (() => void) | undefined;
  /** The token in use, one already fetched for the next attempt, and why to ask for another. */
  #token: string | undefined;
  #nextToken: string | undefined;
  #tokenReason: TokenReason = 'connect';
  /** A refused token is replaced once; an open stream earns another try. */
  #replaced = false;
  #renewal: Promise<{ readonly token: string | undefined }> | undefined;

  /** Connects at once. All that happens is told through the callbacks, never before this returns. */
  constructor(options: ClientOptions) {
    this.#options = options;
    this.#lastEventId = options.lastEventId ?? '';
    this.#state = { phase: 'connecting', since: Date.now(), reason: '', message: '', retryAt: undefined };
    const { signal } = options;
    if (signal?.aborted) this.close();
    signal?.addEventListener('abort', () => this.close(), { once: true, signal: this.#abort.signal });
    void this.#run();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  get #source(): TokenSource | undefined {
    return this.#options.token ?? this.#options.session;
  }

  /** The position after the last event that `onEvent` has taken; opaque. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** Ends the stream for good. Nothing is called afterwards but `onState` with `closed`. */
  close(): void {
    if (isFinal(this.#state)) return;
    this.#abort.abort();
    this.#setState('closed', 'caller', '');
  }

  /** Cuts a wait short, for example when the browser says that it is online again. */
  retryNow(): void {
    this.#wake?.();
  }

  /** Forgets the position and connects anew, so that everything is told again. */
  startOver(): void {
    this.#startOver = true;
    this.#connection?.close();
    this.#wake?.();
  }

  async #run(): Promise<void> {
    // The caller has the client in hand before anything is told.
    await Promise.resolve();
    while (!this.#abort.signal.aborted) {
      const end = await this.#attempt();
      if (this.#abort.signal.aborted) return;
      if (end?.kind === 'again') await this.#pause(end);
      if (end?.kind === 'final') {
        this.#abort.abort();
        this.#setState(end.phase, end.reason, end.message);
      }
    }
  }

  /** One stream from its request to its end; undefined: the next one may follow at once. */
  async #attempt(): Promise<End | undefined> {
    this.#delivered = false;
    if (this.#startOver) this.#lastEventId = '';
    this.#startOver = false;
    try {
      const token = this.#nextToken ?? (await this.#ask(this.#tokenReason));
      this.#nextToken = undefined;
      this.#tokenReason = 'connect';
      this.#token = token;
      this.#adopt(await this.#open(token));
      await this.#read();
      throw new Lost('ended', 'the server ended the stream');
    } catch (error) {
      if (this.#startOver) return endOf(new StartedOver('events are missing'), this.#delivered);
      if (error instanceof Goodbye && error.reason === 'expired') this.#tokenReason = 'expiring';
      if (error instanceof CallbackFailed) console.error(error.cause);
      if (!(error instanceof Refused && error.status === 401)) return endOf(error, this.#delivered);
      return await this.#replaceToken(error);
    } finally {
      this.#connection?.close();
      this.#connection = undefined;
      this.#renewal = undefined;
    }
  }

  async #pause(end: End & { kind: 'again' }): Promise<void> {
    this.#failures = end.failed ? this.#failures + 1 : 0;
    const wait = { failures: this.#failures, retry: this.#retry, retryAfter: end.retryAfter };
    const delay = backoff(wait, this.#options.random);
    const phase = this.#state.phase === 'connecting' ? 'connecting' : 'reconnecting';
    this.#setState(phase, end.reason, end.message, Date.now() + delay);
    await this.#sleep(delay, (wake) => (this.#wake = wake));
    this.#wake = undefined;
    if (!this.#abort.signal.aborted) this.#setState(phase, end.reason, end.message);
  }

  /** Ends early when it is woken, or the client is closed. */
  #sleep(delay: number, waker?: (wake: () => void) => void): Promise<void> {
    const { signal } = this.#abort;
    return new Promise<void>((resolve) => {
      const wake = (): void => {
        clearTimeout(timer);
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const timer = setTimeout(wake, delay);
      signal.addEventListener('abort', wake);
      waker?.(wake);
    });
  }

  #open(token: string | undefined): Promise<Connection> {
    const { url, fetch: given, openTimeout = 20_000, heartbeat = 25_000 } = this.#options;
    const request = {
      url,
      // A session is named, but not sent: the browser does that.
      token: this.#options.token ? token : undefined,
      cookies: !this.#options.token && this.#options.session !== undefined,
      openTimeout,
      silence: heartbeat * 2.5,
      // What no header can carry is no position of Kubecast's, and fetch would throw at it for ever.
      lastEventId: /^[\x21-\x7e]*$/.test(this.#lastEventId) ? this.#lastEventId : '',
      // The global one is looked up per request, so that it may be replaced while the stream lives.
      fetch: given ?? ((input: RequestInfo | URL, init?: RequestInit) => globalThis.fetch(input, init)),
    };
    return Connection.open(request, this.#abort.signal);
  }

  #adopt(connection: Connection): void {
    this.#connection?.close();
    this.#connection = connection;
    this.#replaced = false;
    this.#stale.clear();
    this.#call(() => this.#options.onOpen?.(connection.resumed));
    this.#setState('live', '', '');
  }

  /** Reads until a clean end. While a token is being renewed it also waits for that. */
  async #read(): Promise<void> {
    let reading = this.#connection?.next();
    while (this.#connection) {
      const turn = await (this.#renewal ? Promise.race([reading, this.#renewal]) : reading);
      if (turn === undefined) return;
      if ('token' in turn) {
        this.#renewal = undefined;
        if (await this.#handOver(turn.token)) reading = this.#connection.next();
      } else {
        this.#deliver(turn, this.#connection);
        reading = this.#connection.next();
      }
    }
  }

  #deliver(frames: readonly Frame[], connection: Connection): void {
    this.#retry = connection.retry ?? this.#retry;
    for (const frame of frames) {
      const event = decodeFrame(frame);
      this.#call(() => this.#options.onEvent(event));
      if (this.#abort.signal.aborted || this.#startOver) throw new StartedOver();
      this.#lastEventId = frame.id;
      if (event.type === 'goodbye') throw new Goodbye(event.reason);
      if (event.type === 'expiring') this.#renew();
      else if (event.type !== 'reset') this.#delivered = true;
      if (event.type === 'stale') this.#stale.set(event.watch, event);
      if (event.type === 'live') this.#stale.delete(event.watch);
      if (event.type === 'stale' || event.type === 'live') this.#tellFreshness();
    }
    this.#lastEventId = connection.lastEventId;
  }

  #tellFreshness(): void {
    const [oldest] = [...this.#stale.values()].sort((a, b) => a.since - b.since);
    if (oldest) this.#setState('stale', oldest.reason, '', undefined, oldest.since);
    else this.#setState('live', '', '');
  }

  /** 401. A token that is not new would be refused again, and a flood of those helps nobody. */
  async #replaceToken(refused: Refused): Promise<End | undefined> {
    if (this.#replaced || !this.#source) return endOf(refused, false);
    this.#replaced = true;
    try {
      const token = await this.#ask('refused');
      if (token === undefined || token === this.#token) return endOf(refused, false);
      this.#nextToken = token;
      return undefined;
    } catch (error) {
      this.#replaced = false;
      return endOf(error, false);
    }
  }

  #renew(): void {
    if (this.#source && !this.#renewal) this.#renewal = this.#renewed(this.#connection);
  }

  /** Asks until there is an answer, or the stream is over: whoever gives tokens may be away for a moment. */
  async #renewed(connection: Connection | undefined): Promise<{ readonly token: string | undefined }> {
    for (let failures = 1; ; failures++) {
      try {
        return { token: await this.#ask('expiring') };
      } catch {
        await this.#sleep(backoff({ failures, retry: undefined }, this.#options.random));
        if (this.#connection !== connection || this.#abort.signal.aborted) return { token: undefined };
      }
    }
  }

  /**
   * Opens the next stream before it lets go of this one. Meanwhile nothing is read from this one, so
   * the position stands still and nothing is told twice. If the new one fails, this one goes on.
   */
  async #handOver(token: string | undefined): Promise<boolean> {
    if (token === undefined || token === this.#token) return false;
    try {
      this.#adopt(await this.#open(token));
      this.#token = token;
      return true;
    } catch (error) {
      if (error instanceof CallbackFailed) throw error;
      if (!(error instanceof Refused)) this.#nextToken = token;
      return false;
    }
  }

  async #ask(reason: TokenReason): Promise<string | undefined> {
    try {
      return await this.#source?.(reason);
    } catch (error) {
      throw new TokenFailed(error instanceof Error ? error.message : String(error), { cause: error });
    }
  }

  #call(callback: () => void): void {
    try {
      callback();
    } catch (error) {
      throw new CallbackFailed(error instanceof Error ? error.message : String(error), { cause: error });
    }
  }

  #setState(phase: Phase, reason: string, message: string, retryAt?: number, since?: number): void {
    const old = this.#state;
    since ??= phase === old.phase ? old.since : Date.now();
    const next: ConnectionState = { phase, since, reason, message, retryAt };
    if (JSON.stringify(next) === JSON.stringify(old)) return;
    this.#state = next;
    try {
      this.#options.onState?.(this.#state);
    } catch (error) {
      console.error(error); // no reason to lose the stream
    }
  }
}

// One HTTP request for an event stream: opening it, reading frames, and noticing when it is dead.

import { parseRetryAfter } from './backoff.ts';
import { isJsonObject } from './object.ts';
import { FrameParser, type Frame } from './parser.ts';

export interface ConnectionRequest {
  readonly url: string;
  readonly fetch: typeof fetch;
  readonly token: string | undefined;
  /** Whether the browser's cookies go along to another origin, too. */
  readonly cookies: boolean;
  readonly lastEventId: string;
  /** Milliseconds until the response's head must be there. */
  readonly openTimeout: number;
  /** Milliseconds without a byte after which the connection counts as dead. */
  readonly silence: number;
  /** The machine has slept, or its clock was set, or the page did not run for a while: called once it does again. */
  readonly onGap: () => void;
  /** It is to show whether the gateway is there at all: what was heard of it before does not count. */
  readonly doubted: boolean;
}

/** An event stream that is open, wherever it comes from. */
export interface Stream {
  /** Whether it was asked for from a position, so that no snapshot comes. */
  readonly resumed: boolean;
  /** The position after the last complete frame. */
  readonly lastEventId: string;
  /** The last `retry:` in milliseconds, if there was one. */
  readonly retry: number | undefined;
  /** The frames completed by the next bytes, often none; undefined at a clean end. Throws {@link Lost}. */
  next(): Promise<readonly Frame[] | undefined>;
  close(): void;
}

/** Opens a stream. Throws {@link Refused} or {@link Lost}; nothing stays behind then. */
export type Connect = (request: ConnectionRequest, signal: AbortSignal) => Promise<Stream>;

/** The server's answer was no stream. */
export class Refused extends Error {
  override readonly name = 'Refused';
  readonly status: number;
  readonly retryAfter: number | undefined;

  constructor(status: number, message: string, retryAfter: number | undefined) {
    super(message);
    this.status = status;
    this.retryAfter = retryAfter;
  }
}

/** The connection could not be made, broke, fell silent, or came to its end. */
export class Lost extends Error {
  override readonly name = 'Lost';
  /** `network`, `silent`, `timeout`, `not-a-stream`, `ended`; of a stream that tabs share, also what its own client gives. */
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** How often it is looked whether time has passed unseen, in milliseconds. */
const glance = 5_000;

export class Connection implements Stream {
  readonly resumed: boolean;
  readonly #abort: AbortController;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #parser: FrameParser;
  readonly #silence: number;
  readonly #onGap: () => void;
  // By the clock that nobody sets. It may stand still while the machine sleeps.
  #lastByte = performance.now();
  #watchdog: ReturnType<typeof setTimeout> | undefined;

  /** Throws {@link Refused} or {@link Lost}; nothing stays behind then. */
  static async open(request: ConnectionRequest, signal: AbortSignal): Promise<Connection> {
    const abort = new AbortController();
    const stop = (): void => abort.abort(signal.reason);
    if (signal.aborted) stop();
    signal.addEventListener('abort', stop, { once: true });
    const timeout = setTimeout(
      () => abort.abort(new Lost('timeout', `no answer within ${request.openTimeout / 1000} s`)),
      request.openTimeout,
    );
    try {
      const response = await request.fetch(request.url, {
        headers: headersOf(request),
        cache: 'no-store',
        credentials: request.cookies ? 'include' : 'same-origin',
        signal: abort.signal,
      });
      // Read in full inside the time limit: a refusal's body may stall as well.
      const body = await bodyOf(response);
      signal.removeEventListener('abort', stop);
      return new Connection(body, abort, signal, request);
    } catch (error) {
      signal.removeEventListener('abort', stop);
      const reason: unknown = abort.signal.reason;
      abort.abort();
      throw lost(reason instanceof Lost ? reason : error);
    } finally {
      clearTimeout(timeout);
    }
  }

  private constructor(
    body: ReadableStream<Uint8Array>,
    abort: AbortController,
    signal: AbortSignal,
    request: ConnectionRequest,
  ) {
    this.#abort = abort;
    this.#reader = body.getReader();
    this.#parser = new FrameParser(request.lastEventId);
    this.#silence = request.silence;
    this.#onGap = request.onGap;
    this.resumed = request.lastEventId !== '';
    const stop = (): void => this.close();
    signal.addEventListener('abort', stop, { once: true, signal: abort.signal });
    if (signal.aborted) this.close();
    else this.#watch();
  }

  get lastEventId(): string {
    return this.#parser.lastEventId;
  }

  get retry(): number | undefined {
    return this.#parser.retry;
  }

  async next(): Promise<Frame[] | undefined> {
    try {
      const { done, value } = await this.#reader.read();
      if (done) {
        this.close();
        return undefined;
      }
      this.#lastByte = performance.now();
      return this.#parser.push(value);
    } catch (error) {
      const reason: unknown = this.#abort.signal.reason;
      this.close();
      throw lost(reason instanceof Lost ? reason : error);
    }
  }

  close(): void {
    clearTimeout(this.#watchdog);
    this.#abort.abort();
    // An aborted request has no use for what a failing cancellation says.
    this.#reader.cancel().catch(() => undefined);
  }

  // One timer that looks at the clocks when it fires, rather than one per chunk. If it fires late, or the wall clock has
  // moved otherwise, then nobody has listened for a while, so that silence proves nothing: it is for the caller to find out.
  #watch(): void {
    const began = performance.now();
    const wall = Date.now();
    const wait = Math.min(glance, Math.max(0, this.#lastByte + this.#silence - began));
    this.#watchdog = setTimeout(() => {
      const now = performance.now();
      const passed = Math.max(now - began, Date.now() - wall);
      if (passed > wait + glance || Date.now() < wall - glance) this.#onGap();
      else if (now - this.#lastByte >= this.#silence) {
        this.#abort.abort(new Lost('silent', `nothing received for ${Math.round(this.#silence / 1000)} s`));
        return;
      }
      if (!this.#abort.signal.aborted) this.#watch();
    }, wait);
  }
}

function headersOf(request: ConnectionRequest): Record<string, string> {
  const headers: Record<string, string> = { Accept: 'text/event-stream' };
  if (request.lastEventId !== '') headers['Last-Event-ID'] = request.lastEventId;
  if (request.token !== undefined) headers['Authorization'] = `Bearer ${request.token}`;
  return headers;
}

async function bodyOf(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (response.status !== 200) {
    const retryAfter = parseRetryAfter(response.headers.get('Retry-After'));
    throw new Refused(response.status, messageOf(await response.text(), response), retryAfter);
  }
  const type = response.headers.get('Content-Type') ?? '';
  if (!/^text\/event-stream\s*(;|$)/i.test(type) || !response.body) {
    // A proxy's own page, most likely. It may go away.
    throw new Lost('not-a-stream', `the answer was ${type || 'of no type'}, not an event stream`);
  }
  return response.body;
}

/** What the server says for people: `message` of a Kubernetes Status, or of problem+json. */
export function messageOf(body: string, response: Response): string {
  const bare = `HTTP ${response.status} ${response.statusText}`.trim();
  try {
    const data: unknown = JSON.parse(body);
    if (!isJsonObject(data)) return bare;
    const told = [data.message, data.detail, data.title].find((text) => typeof text === 'string' && text !== '');
    return typeof told === 'string' ? told : bare;
  } catch {
    return bare;
  }
}

function lost(error: unknown): Error {
  if (error instanceof Refused || error instanceof Lost) return error;
  return new Lost('network', error instanceof Error ? error.message : String(error));
}

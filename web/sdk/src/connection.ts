// One HTTP request for an event stream: opening it, reading frames, and noticing when it is dead.

import { abort as abortWith, reasonOf } from './abort.ts';
import { parseRetryAfter } from './backoff.ts';
import { within } from './deadline.ts';
import { lost, Lost, Refused } from './lost.ts';
import { parse, text } from './object.ts';
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
  /** What the clocks said when they were looked at last. */
  #at = 0;
  #wall = 0;

  /** Throws {@link Refused} or {@link Lost}; nothing stays behind then. */
  static async open(request: ConnectionRequest, signal: AbortSignal): Promise<Connection> {
    const abort = new AbortController();
    const { url, token, lastEventId, cookies } = request;
    const headers: Record<string, string> = { Accept: 'text/event-stream' };
    if (lastEventId !== '') headers['Last-Event-ID'] = lastEventId;
    if (token !== undefined) headers['Authorization'] = `Bearer ${token}`;
    const init: RequestInit = { headers, cache: 'no-store', credentials: cookies ? 'include' : 'same-origin', signal: abort.signal };
    try {
      // Read in full inside the time limit: a refusal's body may stall as well.
      const body = await within(request.openTimeout, async () => bodyOf(await request.fetch(url, init)), signal);
      return new Connection(body, abort, signal, request);
    } catch (error) {
      abort.abort();
      throw lost(error);
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
    signal.addEventListener('abort', () => this.close(), { once: true, signal: abort.signal });
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
      // It may have waited here for as long as nobody listened.
      if (this.#overslept()) this.#watch();
      this.#lastByte = performance.now();
      return this.#parser.push(value);
    } catch (error) {
      const reason = this.#abort.signal.aborted ? reasonOf(this.#abort.signal) : undefined;
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

  // One timer that looks at the clocks when it fires, rather than one per chunk.
  #watch(): void {
    clearTimeout(this.#watchdog);
    this.#at = performance.now();
    this.#wall = Date.now();
    this.#watchdog = setTimeout(() => {
      if (!this.#overslept() && performance.now() - this.#lastByte >= this.#silence) {
        abortWith(this.#abort, new Lost('silent', `no word within ${this.#silence / 1_000} s`));
      }
      if (!this.#abort.signal.aborted) this.#watch();
    }, Math.min(glance, this.#lastByte + this.#silence - this.#at));
  }

  /**
   * Whether they are looked at late, or the wall clock has moved otherwise: then nobody has listened for a while, silence proves nothing, and
   * neither does what was heard. It is for the caller to find out.
   */
  #overslept(): boolean {
    const moved = Date.now() - this.#wall;
    const late = Math.max(performance.now() - this.#at, moved) > 2 * glance || moved < -glance;
    if (late) this.#onGap();
    return late;
  }
}

async function bodyOf(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (response.status !== 200) {
    const retryAfter = parseRetryAfter(response.headers.get('Retry-After'));
    throw new Refused(response.status, messageOf(await response.text(), response), retryAfter);
  }
  const type = response.headers.get('Content-Type') ?? '';
  if (!/^text\/event-stream\s*(;|$)/i.test(type) || !response.body) {
    // A proxy's own page, most likely. It may go away.
    throw new Lost('not-a-stream', `the answer is ${type || 'of no type'}`);
  }
  return response.body;
}

/** What the server says for people: `message` of a Kubernetes Status, or of problem+json. */
export function messageOf(body: string, response: Response): string {
  const bare = `HTTP ${response.status} ${response.statusText}`.trim();
  const data = parse(body);
  return [data?.message, data?.detail, data?.title].map(text).find(Boolean) ?? bare;
}

// What a page's requests to the gateway are, as a wrapped `fetch` sees them, and the faults that it injects.

import { FrameParser } from '../parser.ts';
import { Body } from './body.ts';
import { broken, type Lasting, type Once } from './faults.ts';
import { redactData, redactText, redactUrl } from './redact.ts';

/** One request for a stream. */
export interface SeenStream {
  readonly id: number;
  /** Path and query, without credentials. */
  readonly url: string;
  /** In milliseconds since the epoch. */
  readonly at: number;
  /** From which position; empty: from none, so with a snapshot. */
  readonly from: string;
  /** After the last frame. */
  position: string;
  /** As the page received them, without compression; frames, too. */
  bytes: number;
  frames: number;
  /** Undefined: there is no answer yet. */
  status: number | undefined;
  /** Why it ended; undefined: it has not. */
  end: string | undefined;
}

/** A frame of a stream. */
export interface SeenFrame {
  readonly id: number;
  readonly stream: number;
  readonly at: number;
  /** With the watch's name, as it was sent. */
  readonly event: string;
  readonly position: string;
  /** Of its data, in characters. */
  readonly size: number;
  /** Bounded, without credentials and without the data of Secrets and ConfigMaps. */
  readonly data: string;
}

/** A watch was told to forget what it knew, and why. */
export interface SeenReset {
  readonly id: number;
  readonly stream: number;
  readonly at: number;
  readonly watch: string;
  readonly reason: string;
}

/** What to look at. */
export interface DevtoolsOptions {
  /** The gateway's origin; by default the page's own. Requests to others pass untouched. */
  readonly gateway?: string | undefined;
  /** What answers; by default the global one. */
  readonly fetch?: typeof fetch | undefined;
  /** How late the fault `delay` is, in milliseconds. */
  readonly delay?: number | undefined;
}

const kept = { streams: 20, frames: 200, resets: 50, tokens: 8 };

/** Remembers the newest streams, frames and resets of a page, and lets its gateway misbehave. Nothing leaves the page. */
export class Devtools {
  readonly streams: SeenStream[] = [];
  readonly frames: SeenFrame[] = [];
  readonly resets: SeenReset[] = [];
  readonly #options: DevtoolsOptions;
  readonly #answer: typeof fetch;
  readonly #faults = new Set<Lasting>();
  readonly #bodies = new Set<Body>();
  readonly #listeners = new Set<() => void>();
  /** Those in use, so that they are shown nowhere. */
  readonly #tokens = new Set<string>();
  #ids = 0;
  #reset = false;

  constructor(options: DevtoolsOptions = {}) {
    this.#options = options;
    this.#answer = options.fetch ?? globalThis.fetch.bind(globalThis);
  }

  /** For `createKubecast({ fetch })`, where the global one is not to be replaced. */
  readonly fetch: typeof fetch = (input, init) => {
    const request = input instanceof Request ? input : undefined;
    const base = (globalThis as { location?: { href: string } }).location?.href ?? 'http://page.invalid/';
    const url = new URL(input instanceof Request ? input.url : input, base);
    if (url.origin !== new URL(this.#options.gateway ?? '/', base).origin) return this.#answer(input, init);
    const headers = new Headers(init?.headers ?? request?.headers);
    const isStream = headers.get('Accept') === 'text/event-stream' && (init?.method ?? request?.method ?? 'GET') === 'GET';
    this.#know(headers.get('Authorization'));
    return isStream ? this.#stream(url, headers, input, init) : this.#ask(input, init);
  };

  /** Replaces the page's `fetch` until what it returns is called. */
  install(): () => void {
    const before = globalThis.fetch;
    globalThis.fetch = this.fetch;
    return () => {
      if (globalThis.fetch === this.fetch) globalThis.fetch = before;
    };
  }

  subscribe(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  }

  get faults(): ReadonlySet<Lasting> {
    return this.#faults;
  }

  /** Turns a fault on or off. `429` and `offline` break what is open. */
  set(fault: Lasting, on: boolean): void {
    if (this.#faults.has(fault) === on) return;
    if (on) this.#faults.add(fault);
    else this.#faults.delete(fault);
    for (const body of this.#bodies) {
      if (on && (fault === '429' || fault === 'offline')) body.fail(broken(), `fault: ${fault}`);
      else body.look();
    }
    this.#tell();
  }

  inject(fault: Once): void {
    this.#reset = fault === '410';
    for (const body of this.#bodies) body.fail(broken(), `fault: ${fault}`);
    this.#tell();
  }

  /** All faults off. */
  heal(): void {
    for (const fault of [...this.#faults]) this.set(fault, false);
  }

  async #stream(url: URL, headers: Headers, input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    const reset = this.#reset && headers.has('Last-Event-ID');
    this.#reset = false;
    const from = headers.get('Last-Event-ID') ?? '';
    const seen: SeenStream = { id: ++this.#ids, url: redactUrl(url, this.#tokens), at: Date.now(), from, position: from, bytes: 0, frames: 0, status: undefined, end: undefined };
    this.#keep('streams', seen);
    if (reset) headers.delete('Last-Event-ID');
    try {
      const answer = await this.#ask(input, { ...init, headers });
      seen.status = answer.status;
      if (!answer.ok || !answer.body || !answer.headers.get('Content-Type')?.startsWith('text/event-stream')) {
        seen.end = `HTTP ${answer.status}`;
        return answer;
      }
      const parser = new FrameParser(from);
      const body: Body = new Body({
        source: answer.body,
        url,
        signal: init?.signal ?? undefined,
        faults: this.#faults,
        late: () => this.#late(),
        reset,
        onBytes: (bytes) => this.#took(seen, parser, bytes),
        onEnd: (cause) => {
          seen.end ??= cause;
          this.#bodies.delete(body);
          this.#tell();
        },
      });
      if (seen.end === undefined) this.#bodies.add(body);
      return new Response(body.stream, { status: answer.status, statusText: answer.statusText, headers: answer.headers });
    } catch (error) {
      seen.end = init?.signal?.aborted ? 'closed by the page' : redactText(String(error), this.#tokens);
      throw error;
    } finally {
      this.#tell();
    }
  }

  async #ask(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
    await this.#late();
    init?.signal?.throwIfAborted();
    if (this.#faults.has('offline')) throw broken();
    if (this.#faults.has('429')) return new Response('a fault of the devtools', { status: 429, headers: { 'Retry-After': '1' } });
    return this.#answer(input, init);
  }

  async #late(): Promise<void> {
    if (this.#faults.has('delay')) await new Promise((resolve) => setTimeout(resolve, this.#options.delay ?? 2_000));
  }

  #took(seen: SeenStream, parser: FrameParser, bytes: Uint8Array): void {
    seen.bytes += bytes.length;
    for (const { event, data, id } of parser.push(bytes)) {
      seen.frames++;
      const frame = { id: ++this.#ids, stream: seen.id, at: Date.now(), event, position: id, size: data.length, data: redactData(data, this.#tokens) };
      this.#keep('frames', frame);
      const dot = event.lastIndexOf('.');
      const type = event.slice(dot + 1);
      if (type !== 'reset' && type !== 'goodbye') continue;
      const reason = reasonOf(frame.data);
      if (type === 'goodbye') seen.end = `goodbye: ${reason}`;
      else this.#keep('resets', { id: frame.id, stream: seen.id, at: frame.at, watch: event.slice(0, Math.max(dot, 0)), reason });
    }
    seen.position = parser.lastEventId;
    this.#tell();
  }

  #keep<K extends 'streams' | 'frames' | 'resets'>(what: K, one: this[K][number]): void {
    const list = this[what] as unknown[];
    list.push(one);
    if (list.length > kept[what]) list.shift();
  }

  #know(authorization: string | null): void {
    const token = authorization?.split(' ', 2)[1];
    if (!token) return;
    this.#tokens.delete(token);
    this.#tokens.add(token);
    for (const oldest of this.#tokens) {
      if (this.#tokens.size <= kept.tokens) break;
      this.#tokens.delete(oldest);
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener();
  }
}

function reasonOf(data: string): string {
  try {
    const { reason } = JSON.parse(data) as { reason?: unknown };
    return typeof reason === 'string' ? reason : '';
  } catch {
    return '';
  }
}

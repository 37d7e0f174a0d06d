// A server without a network: what it is asked comes by a function that is called as `fetch` is.

/** What the mock reads of a request; Node's own is one. */
export interface MockRequest {
  readonly method?: string | undefined;
  readonly url?: string | undefined;
  readonly headers: Readonly<Record<string, string | readonly string[] | undefined>>;
  on(event: 'data', listener: (part: Uint8Array) => void): unknown;
  on(event: 'end', listener: () => void): unknown;
}

/** And what it does to answer it. */
export interface MockResponse {
  readonly socket: { destroy(): unknown } | null;
  writeHead(status: number, headers: Readonly<Record<string, string>>): { end(text?: string): unknown };
  write(text: string | Uint8Array, written?: () => void): unknown;
  end(text?: string): unknown;
  on(event: 'close', listener: () => void): unknown;
}

type Handler = (request: MockRequest, response: MockResponse) => void;

const utf8 = new TextEncoder();

/** A `fetch` that is answered by `handle`. A connection that is cut has told before what was written to it. */
export function inMemory(handle: Handler): typeof fetch {
  return async (input, init) => {
    const address = input instanceof Request ? input : new URL(String(input), 'http://gateway');
    // Without the signal: Node keeps that for as long as there is the request, and the answer, which listens to it, has the request.
    const request = new Request(address, { ...init, signal: null });
    const { pathname, search } = new URL(request.url);
    const said = new Uint8Array(await request.arrayBuffer());
    const signal = init?.signal ?? (input instanceof Request ? input.signal : undefined);
    signal?.throwIfAborted();
    return new Promise((resolve, reject) => {
      const answer = new Answer(request.method === 'HEAD', resolve, reject);
      signal?.addEventListener('abort', () => answer.abort(signal.reason));
      // Some documents for tests (happy-dom) keep the case of names.
      const headers = Object.fromEntries([...request.headers].map(([name, value]) => [name.toLowerCase(), value]));
      const on = (event: 'data' | 'end', listener: (part: Uint8Array) => void): void => {
        if (event === 'end' || said.length > 0) queueMicrotask(() => listener(said));
      };
      handle({ method: request.method, url: pathname + search, headers, on }, answer);
    });
  };
}

class Answer implements MockResponse {
  readonly socket = { destroy: (): void => this.#finish('broken') };
  readonly #bodyless: boolean;
  readonly #resolve: (response: Response) => void;
  readonly #reject: (reason: unknown) => void;
  readonly #body: ReadableStream<Uint8Array>;
  readonly #onClose: (() => void)[] = [];
  readonly #chunks: Uint8Array[] = [];
  #state: 'open' | 'ended' | 'broken' = 'open';
  #controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  /** Somebody waits for the next chunk. */
  #pulled: (() => void) | undefined;
  #closed = false;

  constructor(bodyless: boolean, resolve: (response: Response) => void, reject: (reason: unknown) => void) {
    this.#bodyless = bodyless;
    this.#resolve = resolve;
    this.#reject = reject;
    // Chunks are handed over one by one, since an error would throw away those that wait in the stream.
    this.#body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          this.#controller = controller;
        },
        pull: () =>
          new Promise<void>((pulled) => {
            this.#pulled = pulled;
            this.#hand();
          }),
        cancel: () => this.#gone(),
      },
      { highWaterMark: 0 },
    );
  }

  writeHead(status: number, headers: Readonly<Record<string, string>>): this {
    this.#resolve(new Response(this.#bodyless || status === 204 || status === 304 ? null : this.#body, { status, headers }));
    return this;
  }

  write(text: string | Uint8Array, written?: () => void): void {
    if (this.#state !== 'open' || this.#closed) return;
    this.#chunks.push(typeof text === 'string' ? utf8.encode(text) : text);
    this.#hand();
    if (written) queueMicrotask(written);
  }

  end(text?: string): void {
    if (text) this.write(text);
    this.#finish('ended');
  }

  on(_: 'close', listener: () => void): void {
    this.#onClose.push(listener);
  }

  /** The client wants no more. */
  abort(reason: unknown): void {
    this.#reject(reason);
    if (!this.#closed && this.#state === 'open') this.#controller?.error(reason);
    this.#gone();
  }

  #finish(state: 'ended' | 'broken'): void {
    if (this.#state !== 'open') return;
    this.#state = state;
    this.#reject(new TypeError('fetch failed')); // if there was no answer yet
    this.#hand();
    queueMicrotask(() => this.#gone());
  }

  #hand(): void {
    if (!this.#pulled) return;
    const chunk = this.#chunks.shift();
    if (chunk) this.#controller?.enqueue(chunk);
    else if (this.#state === 'ended') this.#controller?.close();
    else if (this.#state === 'broken') this.#controller?.error(new TypeError('terminated'));
    else return;
    const pulled = this.#pulled;
    this.#pulled = undefined;
    pulled();
  }

  #gone(): void {
    if (this.#closed) return;
    this.#closed = true;
    for (const listener of this.#onClose) listener();
  }
}

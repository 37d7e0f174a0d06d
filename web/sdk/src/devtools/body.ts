// A stream's body on its way to the page: looked at, and made to misbehave.

import { broken, told, type Lasting } from './faults.ts';

export interface BodyOptions {
  readonly source: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly url: URL;
  /** What the page would abort. */
  readonly signal: AbortSignal | undefined;
  readonly faults: ReadonlySet<Lasting>;
  readonly late: () => Promise<void>;
  /** What came, made up or not. */
  readonly onBytes: (bytes: Uint8Array) => void;
  readonly onEnd: (cause: string) => void;
  /** The gateway is to be taken for one that did not know the position. */
  readonly reset: boolean;
}

export class Body {
  readonly stream: ReadableStream<Uint8Array<ArrayBuffer>>;
  readonly #options: BodyOptions;
  readonly #reader: ReadableStreamDefaultReader<Uint8Array<ArrayBuffer>>;
  #controller: ReadableStreamDefaultController<Uint8Array<ArrayBuffer>> | undefined;
  /** Nothing more comes, and nobody says so. */
  #dead = false;
  #ended = false;
  /** The page has been told `stale` by the devtools. */
  #stale = false;
  /** What came last ended a frame, so that another may follow. */
  #between = true;

  constructor(options: BodyOptions) {
    this.#options = options;
    this.#reader = options.source.getReader();
    this.#dead = options.faults.has('half-open');
    this.stream = new ReadableStream<Uint8Array<ArrayBuffer>>(
      {
        start: (controller) => {
          this.#controller = controller;
          if (options.reset && !this.#dead) this.#give(told(options.url, 'reset'));
        },
        pull: () => this.#pull(),
        cancel: () => this.#end('closed by the page'),
      },
      { highWaterMark: 1 },
    );
    const { signal } = options;
    const abort = (): void => this.fail(signal?.reason, 'closed by the page');
    if (signal?.aborted) abort();
    else signal?.addEventListener('abort', abort, { once: true });
  }

  fail(error: unknown = broken(), cause = 'fault: cut'): void {
    if (this.#ended) return;
    this.#controller?.error(error);
    this.#end(cause);
  }

  /** The faults have changed. */
  look(): void {
    if (this.#ended) return;
    const { faults, url } = this.#options;
    // What a half-open connection has lost never comes: the page would miss a change in silence if it went on.
    if (faults.has('half-open')) this.#dead = true;
    if (this.#dead || !this.#between || faults.has('stale') === this.#stale) return;
    this.#stale = faults.has('stale');
    this.#give(told(url, this.#stale ? 'stale' : 'live'));
  }

  async #pull(): Promise<void> {
    try {
      for (;;) {
        const { done, value } = await this.#reader.read();
        if (this.#dead && done) await new Promise<never>(() => undefined); // the page aborts it
        if (this.#dead) continue;
        await this.#options.late();
        if (this.#ended) return;
        if (this.#dead) continue;
        if (done) {
          this.#controller?.close();
          this.#end('ended by the gateway');
          return;
        }
        this.#give(value);
        this.look();
        return;
      }
    } catch (error) {
      if (!this.#dead) this.fail(error, 'network');
    }
  }

  #give(bytes: Uint8Array<ArrayBuffer>): void {
    if (bytes.length === 0) return;
    this.#between = bytes.at(-1) === 10 && (bytes.length === 1 ? this.#between : bytes.at(-2) === 10);
    this.#options.onBytes(bytes);
    this.#controller?.enqueue(bytes);
  }

  #end(cause: string): void {
    if (this.#ended) return;
    this.#ended = true;
    this.#options.onEnd(cause);
    // It is broken already, or nobody wants to know.
    this.#reader.cancel().catch(() => undefined);
  }
}

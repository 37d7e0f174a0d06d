// A fetch whose answers a test writes by hand, byte by byte.

export interface ScriptedRequest {
  readonly url: string;
  readonly headers: Headers;
  readonly aborted: boolean;
  /** Answers 200 and leaves the stream open. */
  accept(...chunks: string[]): ScriptedBody;
  refuse(status: number, headers?: Record<string, string>, body?: string): void;
  /** As when nobody listens at the address. */
  fail(): void;
}

export interface ScriptedBody {
  push(text: string): void;
  end(): void;
  break(): void;
  /** Whoever asked has let go of it. */
  readonly cancelled: boolean;
}

const utf8 = new TextEncoder();

export class ScriptedFetch {
  readonly requests: ScriptedRequest[] = [];

  readonly fetch: typeof fetch = (input, init) =>
    new Promise<Response>((resolve, reject) => {
      const signal = init?.signal;
      const aborted = (): void => reject(new DOMException('aborted', 'AbortError'));
      signal?.addEventListener('abort', aborted);
      this.requests.push({
        url: typeof input === 'string' ? input : input instanceof URL ? input.href : input.url,
        headers: new Headers(init?.headers),
        get aborted() {
          return signal?.aborted ?? false;
        },
        accept: (...chunks) => {
          const body = scriptedBody(signal ?? undefined);
          resolve(new Response(body.stream, { headers: { 'Content-Type': 'text/event-stream' } }));
          for (const chunk of chunks) body.push(chunk);
          return body;
        },
        refuse: (status, headers, body) => {
          resolve(new Response(status === 204 ? null : (body ?? ''), { status, headers: headers ?? {} }));
        },
        fail: () => reject(new TypeError('fetch failed')),
      });
    });

  get last(): ScriptedRequest {
    const last = this.requests.at(-1);
    if (!last) throw new Error('nothing was requested yet');
    return last;
  }
}

function scriptedBody(signal: AbortSignal | undefined): ScriptedBody & { stream: ReadableStream<Uint8Array> } {
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let open = true;
  let cancelled = false;
  const stream = new ReadableStream<Uint8Array>({
    start: (started) => {
      controller = started;
    },
    cancel: () => {
      cancelled = true;
      open = false;
    },
  });
  const finish = (how: () => void): void => {
    if (open) how();
    open = false;
  };
  signal?.addEventListener('abort', () => finish(() => controller?.error(signal.reason)));
  return {
    stream,
    get cancelled() {
      return cancelled;
    },
    push: (text) => {
      if (open) controller?.enqueue(utf8.encode(text));
    },
    end: () => finish(() => controller?.close()),
    break: () => finish(() => controller?.error(new TypeError('terminated'))),
  };
}

/** A frame as the gateway writes it. */
export function frame(event: string, id: string, data: unknown): string {
  return `event: ${event}\nid: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
}

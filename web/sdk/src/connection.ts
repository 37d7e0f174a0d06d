// One HTTP request for an event stream: opening it, reading frames, and noticing when it is dead.

import { abort as abortWith, childOf, onAbort, reasonOf } from './abort.ts';
import { parseRetryAfter } from './backoff.ts';
import { within } from './deadline.ts';
import { lost, Lost } from './lost.ts';
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
  /** The frames completed by the next bytes, often none. Throws {@link Lost}, also at a clean end. */
  next(): Promise<readonly Frame[]>;
  /** Is called however it ends. */
  close(): void;
}

/** Opens a stream. Throws {@link Lost}; nothing stays behind then. */
export type Connect = (request: ConnectionRequest, signal: AbortSignal) => Promise<Stream>;

/** How often it is looked whether time has passed unseen, in milliseconds. */
const glance = 5_000;

/** Opens a stream of its own. */
export const connect: Connect = async (request, signal) => {
  const abort = childOf(signal);
  const { url, token, lastEventId, cookies, fetch } = request;
  const headers: Record<string, string> = { Accept: 'text/event-stream' };
  if (lastEventId !== '') headers['Last-Event-ID'] = lastEventId;
  if (token !== undefined) headers['Authorization'] = `Bearer ${token}`;
  const init: RequestInit = { headers, cache: 'no-store', credentials: cookies ? 'include' : 'same-origin', signal: abort.signal };
  try {
    // Read in full inside the time limit: a refusal's body may stall as well.
    const body = await within(request.openTimeout, async () => bodyOf(await fetch(url, init)), abort.signal);
    return streamOf(body, abort, request);
  } catch (error) {
    abort.abort();
    throw lost(error, url);
  }
};

function streamOf(body: ReadableStream<Uint8Array>, abort: AbortController, { lastEventId, silence, onGap }: ConnectionRequest): Stream {
  const reader = body.getReader();
  // By the clock that nobody sets. It may stand still while the machine sleeps.
  let lastByte = performance.now();
  let watchdog: ReturnType<typeof setTimeout> | undefined;
  // What the clocks said when they were looked at last.
  let at = 0;
  let wall = 0;

  // Whether they are looked at late, or the wall clock has moved otherwise: then nobody has listened for a while, silence proves nothing, and
  // neither does what was heard. It is for the caller to find out.
  const overslept = (): boolean => {
    const moved = Date.now() - wall;
    const late = Math.max(performance.now() - at, moved) > 2 * glance || moved < -glance;
    if (late) onGap();
    return late;
  };

  // One timer that looks at the clocks when it fires, rather than one per chunk.
  const watch = (): void => {
    clearTimeout(watchdog);
    at = performance.now();
    wall = Date.now();
    watchdog = setTimeout(() => {
      if (!overslept() && performance.now() - lastByte >= silence) abortWith(abort, new Lost('silent', `no word within ${silence / 1_000} s`));
      if (!abort.signal.aborted) watch();
    }, Math.min(glance, lastByte + silence - at));
  };

  // The parser has the position, and `retry`.
  const stream: FrameParser & Stream = Object.assign(new FrameParser(lastEventId), {
    resumed: lastEventId !== '',
    next: async () => {
      try {
        const { done, value } = await reader.read();
        if (done) throw new Lost('ended', 'the stream ended');
        // It may have waited here for as long as nobody listened.
        if (overslept()) watch();
        lastByte = performance.now();
        return stream.push(value);
      } catch (error) {
        const reason = abort.signal.aborted ? reasonOf(abort.signal) : undefined;
        stream.close();
        throw lost(reason instanceof Lost ? reason : error);
      }
    },
    close: () => {
      clearTimeout(watchdog);
      abort.abort();
      // An aborted request has no use for what a failing cancellation says.
      reader.cancel().catch(() => undefined);
    },
  });
  onAbort(abort.signal, () => stream.close());
  if (!abort.signal.aborted) watch();
  return stream;
}

async function bodyOf(response: Response): Promise<ReadableStream<Uint8Array>> {
  if (response.status !== 200) {
    const retryAfter = parseRetryAfter(response.headers.get('Retry-After'));
    throw new Lost(`http:${response.status}`, messageOf(await response.text(), response).replace(/^w\d+: /, ''), retryAfter); // a watch's name, which is nobody's concern
  }
  const type = response.headers.get('Content-Type') ?? '';
  const { body } = response as { readonly body?: Response['body'] };
  if (!/^text\/event-stream\b/i.test(type) || body === null) {
    // A proxy's own page, most likely. It may go away.
    throw new Lost('not-a-stream', `the answer is ${type || 'of no type'}`);
  }
  if (!body) throw new Lost('no-body', 'fetch gives no body to read');
  return body;
}

/** What the server says for people: `message` of a Kubernetes Status, or of problem+json. */
export function messageOf(body: string, response: Response): string {
  const data = parse(body);
  return text(data?.message) || text(data?.detail) || text(data?.title) || `HTTP ${response.status} ${response.statusText}`.trim();
}

// What becomes of a request for a stream that comes to nothing.

/** The connection could not be made, was refused, broke, fell silent, or came to its end. */
export class Lost extends Error {
  override readonly name = 'Lost';
  /** See {@link Trouble}; of a stream that tabs share, also what its own client gives. */
  declare readonly reason: string;
  /** What the server asks for, in milliseconds. */
  declare readonly retryAfter: number | undefined;

  constructor(reason: string, message: string, retryAfter?: number) {
    super(message);
    this.reason = reason;
    this.retryAfter = retryAfter;
  }
}

/** Whether an answer with such a status, as `:403`, is no to who is signed in, and no attempt mends it. Of client errors 408, 425 and 429 heal by waiting. */
export const isRefusal = (status: string): boolean => /:204|:4(?!01|08|25|29)/.test(status);

/** What such an answer is; undefined: an attempt may mend it. */
export const finalOf = (status: string): 'denied' | 'failed' | undefined => (/:40[13]/.test(status) ? 'denied' : isRefusal(status) ? 'failed' : undefined);

/** What was thrown says for people. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What a request of `url`, or its stream, has failed with. */
export function lost(error: unknown, url?: string): Lost {
  if (error instanceof Lost) return error;
  const message = textOf(error);
  // Node, Deno and Bun have no page that an address could be relative to. Whatever else stands in for `fetch` may have one.
  const relative = url?.startsWith('/') && message.includes('URL');
  return relative ? new Lost('no-address', `${message}: createKubecast needs a gateway`) : new Lost('network', message);
}

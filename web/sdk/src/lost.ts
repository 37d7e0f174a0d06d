// What becomes of a request for a stream that comes to nothing.

/** The server's answer was no stream. */
export class Refused extends Error {
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
  /** `token`, `network`, `silent`, `timeout`, `not-a-stream`, `ended`, `inconsistent`; of a stream that tabs share, also what its own client gives. */
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/** What was thrown says for people. */
export const textOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** What a request or its stream has failed with. */
export function lost(error: unknown): Error {
  return error instanceof Refused || error instanceof Lost ? error : new Lost('network', textOf(error));
}

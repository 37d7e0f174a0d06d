// What a client has to bring to be tried.

/** Where a client is sent. */
export interface Place {
  /** The server's origin. */
  readonly url: string;
  /** Asks the server; for a client that takes one. Without `network` it is the only way there. */
  readonly fetch: typeof fetch;
  /** The list to watch. A client may ask for it alone, or as the one watch of `/stream`. */
  readonly path: string;
}

/** An object as the server told it, as far as cases look at it. */
export interface Row {
  readonly metadata: { readonly uid: string; readonly name: string; readonly namespace?: string | undefined; readonly resourceVersion?: string | undefined };
}

/** A client that watches one list. */
export interface ClientUnderTest {
  /** What it shows now. */
  rows(): Iterable<Row>;
  /** `live` if it says that what it shows is what the server knows; anything else if it does not. */
  status(): string;
  /** Ends it. */
  close(): void;
}

/** A kind of client. */
export interface ClientSubject {
  readonly open: (place: Place) => ClientUnderTest;
  /** After how long without a byte the client takes a stream for dead, in milliseconds. */
  readonly silence: number;
  /** `deltas`: it asks for `deltas=merge-patch`. */
  readonly abilities?: readonly 'deltas'[] | undefined;
  /** The server listens on a port of loopback, which wants Node. */
  readonly network?: boolean | undefined;
}

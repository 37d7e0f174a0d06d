// What a server has to bring to be tried.

/** An object of a room. */
export interface Thing {
  readonly metadata: { readonly uid: string; readonly name: string; readonly resourceVersion?: string | undefined; readonly labels?: Readonly<Record<string, string>> | undefined };
  readonly data?: Readonly<Record<string, string>> | undefined;
}

/** A list that nobody else changes, such as the ConfigMaps of a namespace of its own. It is empty at first. */
export interface Room {
  /** The list's path at the server. */
  readonly path: string;
  /** Makes an object of this name what is told, or makes it. */
  put(name: string, content?: Pick<Thing, 'data'> & { readonly labels?: Readonly<Record<string, string>> | undefined }): Promise<Thing>;
  remove(name: string): Promise<void>;
  /** Forgets what happened up to now, so that no older position can be gone on from; if it can be made to. */
  forget?(): Promise<void>;
  /** Jobs of a namespace of their own, of which a history is kept; with the ability `history`. */
  readonly jobs?: RoomJobs | undefined;
}

export interface RoomJobs {
  /** Their history's path at the server. */
  readonly path: string;
  /** Makes a job that is not to run. */
  submit(name: string): Promise<unknown>;
  /** Deletes it. */
  withdraw(name: string): Promise<unknown>;
}

/**
 * - `forgets`: rooms have `forget`
 * - `queries`: selectors, `search`, `fields`, `deltas` and `conflate` of streams, and the refusal of what is unknown
 * - `history`: rooms have `jobs`; the history, notifications and logs
 * - `lists`: lists, pages of them, ETags, counts; and live counts and pages
 */
export type ServerAbility = 'forgets' | 'queries' | 'lists' | 'history';

/** A server. */
export interface ServerSubject {
  readonly url: string;
  readonly fetch?: typeof fetch | undefined;
  /** With which a caller is let in who may see every room. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** For each case another one. */
  readonly room: () => Promise<Room>;
  readonly abilities?: readonly ServerAbility[] | undefined;
}

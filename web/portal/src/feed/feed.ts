// The portal's one stream. Finds out what the user may watch, and follows what is on screen.

import { createKubecast, Live, mayWatch, watchable, type Kubecast, type ConnectionState, type Observable, type Schedule, type TokenSource, type Watchable } from '@kubecast/sdk';
import { kindOf, pathsOf, tableNames, watchNames, type Kinds, type TableName, type WatchName } from './kinds.ts';

export interface FeedState {
  /** Empty: all namespaces. */
  readonly namespace: string;
  readonly live: Live<Kinds>;
  /** The stream's, but while less is about to be asked for, which is no state that a person should read of. */
  readonly connection: Observable<ConnectionState>;
  /** What the stream carries. */
  readonly watches: readonly WatchName[];
  /** The gateway's own words, if it refused to show something in this namespace. */
  readonly refusal: string | undefined;
  /** There is nothing left to ask for. */
  readonly forbidden: boolean;
  /**
   * The namespaces that the user may see something in; undefined: no restriction is known. Kept current
   * while all of them are watched, and remembered while one is.
   */
  readonly visible: readonly string[] | undefined;
}

export interface FeedOptions {
  readonly token?: TokenSource | undefined;
  /** In place of a token: the browser's session. */
  readonly session?: TokenSource | undefined;
  readonly namespace: string;
  /** The table on screen: the other one is not asked for. */
  readonly page: TableName;
  /** One object is on screen in place of the table. */
  readonly detail?: boolean;
  readonly gateway?: string;
  readonly schedule?: Schedule;
  readonly random?: () => number;
}

/**
 * A stream is refused as a whole if nothing at all may be seen of one of its watches. Then the gateway is asked what may be
 * watched, and no more than that is asked for. Who may see jobs only gets jobs. Who may see some namespaces is shown these,
 * whether they may list namespaces or not.
 */
export class Feed implements Observable<FeedState> {
  /** What is shown of one object, or of the user's own, is followed here, while the tables rest; and what the user was told, beside them, too. */
  readonly details: Kubecast;
  /** Has a stream of its own, if anything of it is followed, and goes on while nobody looks. */
  readonly aside: Kubecast;
  readonly #options: FeedOptions;
  readonly #listeners = new Set<() => void>();
  /** What the gateway said when it was last asked; undefined: it was not, or may say something else by now. */
  #allowed: readonly Watchable[] | undefined;
  /** The stream's watches are what the gateway said, and neither all nor what it said of another namespace. */
  #answered = false;
  #state: FeedState;
  /** The same with the connection that is in use. */
  #shown: FeedState;
  #page: TableName;
  #detail: boolean;
  #paused = false;
  #closed = false;

  constructor(options: FeedOptions) {
    this.#options = options;
    const { token, session, gateway, schedule, random } = options;
    this.details = createKubecast({ token, session, gateway, schedule, random });
    this.aside = createKubecast({ token, session, gateway, random }); // told without frames, which a hidden page has none of
    this.#page = options.page;
    this.#detail = options.detail ?? false;
    this.#state = this.#connect(options.namespace, this.#wanted, undefined, undefined);
    this.#shown = this.#withConnection(this.#state);
  }

  /** What the page needs, if it may be seen. */
  get #wanted(): readonly WatchName[] {
    return [this.#page, 'namespaces'];
  }

  /** What of that may be seen of a namespace, by an answer of the gateway. */
  #allowedIn(answer: readonly Watchable[] | undefined, namespace: string): readonly WatchName[] {
    const allowed = allowedIn(answer, namespace);
    return this.#wanted.filter((name) => allowed.includes(name));
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly getSnapshot = (): FeedState => this.#shown;

  /** Watches another namespace, or all. Rows that are in sight both before and after stay on screen. */
  setNamespace(namespace: string): void {
    if (this.#closed || namespace === this.#state.namespace) return;
    const some = this.#allowedIn(this.#allowed, namespace);
    this.#answered = false;
    this.#become(this.#connect(namespace, some.length > 0 ? some : this.#wanted, undefined, this.#state));
  }

  /** Shows another table. What is watched of both goes on without a gap. */
  setPage(page: TableName): void {
    if (this.#closed || page === this.#page) return;
    this.#page = page;
    this.#answered = false;
    const { live, namespace } = this.#state;
    const some = this.#allowedIn(this.#allowed, namespace);
    const watches = some.length > 0 ? some : this.#wanted;
    if (live.closed) {
      this.#become(this.#connect(namespace, watches, undefined, this.#state));
      return;
    }
    live.watch(watches);
    this.#become({ ...this.#state, watches });
  }

  /** Shows what is followed in {@link details}, or the table again. A browser has few connections, so the table's stream is let go of. */
  setDetail(detail: boolean): void {
    if (this.#closed || detail === this.#detail) return;
    this.#detail = detail;
    if (detail) this.#state.live.pause();
    else if (!this.#paused) this.#state.live.resume();
    this.#become(this.#state);
  }

  /** The page is looked at again, or the network is back: what seems open may be dead. */
  wake(): void {
    this.details.wake(); // what was told of the user's jobs is there beside a table, too
    if (!this.#detail && !this.#state.live.closed) this.#state.live.wake();
  }

  /** Nobody looks: the stream, of which a browser has few, is for other pages. */
  pause(): void {
    this.#paused = true;
    this.#state.live.pause();
    this.details.pause();
  }

  resume(): void {
    this.#paused = false;
    this.details.resume();
    if (!this.#detail) this.#state.live.resume();
  }

  /** Tries at once what is being waited for, or again what was refused. */
  retry(): void {
    if (this.#closed) return;
    if (this.#detail) {
      this.details.wake();
      return;
    }
    if (!this.#state.live.closed) {
      this.#state.live.retryNow();
      return;
    }
    this.#allowed = undefined;
    this.#answered = false;
    this.#become(this.#connect(this.#state.namespace, this.#wanted, undefined, this.#state));
  }

  close(): void {
    this.#closed = true;
    this.#state.live.close();
    this.details.close();
    this.aside.close();
  }

  #connect(namespace: string, watches: readonly WatchName[], refusal: string | undefined, before: FeedState | undefined): FeedState {
    const { token, session, gateway, schedule, random } = this.#options;
    const live: Live<Kinds> = new Live<Kinds>({
      gateway,
      token,
      session,
      schedule,
      random,
      watches: pathsOf(namespace),
      active: watches,
      seed: before && seedFrom(before, namespace),
    });
    if (this.#paused || this.#detail) live.pause();
    live.connection.subscribe(() => this.#onConnection(live));
    if (namespace === '') for (const name of tableNames) live.collection(name).subscribe(() => this.#onRows(live));
    return { namespace, live, connection: live.connection, watches, refusal, forbidden: false, visible: before?.visible };
  }

  #onConnection(live: Live<Kinds>): void {
    if (this.#closed || live !== this.#state.live) return;
    const { phase, reason, message } = live.connection.getSnapshot();
    if (phase === 'live') this.#answered = false; // what is refused later is another matter
    if (phase === 'denied' && reason === 'http:403') void this.#askForLess(live, message);
  }

  async #askForLess(live: Live<Kinds>, message: string): Promise<void> {
    const { token, gateway } = this.#options;
    // The first refusal names what the page was opened for.
    const refusal = this.#state.refusal ?? message;
    this.#become({ ...this.#state, refusal, connection: asking });
    const answer = await watchable({ kinds: watchNames.map(kindOf), gateway, token }).catch(() => undefined);
    if (this.#closed || live !== this.#state.live) return;
    this.#allowed = answer;
    const { namespace, watches, visible } = this.#state;
    const said = this.#allowedIn(answer, namespace);
    // A large cluster's gateway may not look for namespaces, and does not know of this one before it is asked for.
    const less = said.length > 0 || namespace === '' ? said : fewer(watches);
    // An answer that was refused, too, is followed by less or by nothing, or this would never end.
    if (less.length === 0 || (this.#answered && less.length >= watches.length)) {
      this.#become({ ...this.#state, connection: live.connection, forbidden: true, visible: namespace === '' ? undefined : visible });
      return;
    }
    this.#answered = true;
    this.#become(this.#connect(namespace, less, refusal, this.#state));
  }

  #onRows(live: Live<Kinds>): void {
    if (this.#closed || live !== this.#state.live) return;
    const told = tables(this.#state.watches).map((name) => live.collection(name).getSnapshot());
    // What restricts a watch is told before its rows.
    if (told.some(({ phase, namespaces }) => phase === 'loading' && !namespaces)) return;
    const visible = union(told.map(({ namespaces }) => namespaces));
    if (visible?.join() !== this.#state.visible?.join()) this.#become({ ...this.#state, visible });
  }

  #withConnection(state: FeedState): FeedState {
    const { connection } = this.details;
    return this.#detail ? { ...state, connection: { subscribe: connection.subscribe, getSnapshot: () => connection.getSnapshot() ?? askingState } } : state;
  }

  #become(state: FeedState): void {
    if (state.live !== this.#state.live) this.#state.live.close();
    this.#state = state;
    this.#shown = this.#withConnection(state);
    for (const listener of [...this.#listeners]) listener();
  }
}

const asking: Observable<ConnectionState> = {
  subscribe: () => () => undefined,
  getSnapshot: () => askingState,
};
const askingState: ConnectionState = { phase: 'connecting', since: 0, reason: '', message: '', retryAt: undefined };

/** The watches of which something may be seen, by the gateway's answer about all of them. */
function allowedIn(answer: readonly Watchable[] | undefined, namespace: string): readonly WatchName[] {
  return watchNames.filter((name, n) => {
    const kind = answer?.[n];
    return kind !== undefined && mayWatch(kind, name === 'namespaces' ? '' : namespace);
  });
}

const tables = (watches: readonly WatchName[]): TableName[] => watches.filter((name) => name !== 'namespaces');

/** The next to try without an answer: nothing but the table, then nothing. */
const fewer = (watches: readonly WatchName[]): readonly WatchName[] => (watches.includes('namespaces') ? tables(watches) : []);

/** All of some lists; undefined if one of them is unrestricted. */
function union(lists: readonly (readonly string[] | undefined)[]): readonly string[] | undefined {
  const names = new Set<string>();
  for (const list of lists) {
    if (!list) return undefined;
    for (const name of list) names.add(name);
  }
  return [...names].sort();
}

/** What is known already and stays in sight, so that no table goes blank in between. */
function seedFrom({ live, watches }: FeedState, namespace: string): { [W in WatchName]?: readonly Kinds[W][] } {
  const known = <W extends WatchName>(name: W): readonly Kinds[W][] =>
    watches.includes(name) ? live.collection(name).getSnapshot().items : [];
  const inSight = ({ metadata }: Kinds[WatchName]): boolean => namespace === '' || metadata.namespace === namespace;
  return { jobs: known('jobs').filter(inSight), pods: known('pods').filter(inSight), namespaces: known('namespaces') };
}

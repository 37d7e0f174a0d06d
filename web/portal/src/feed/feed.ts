// The portal's one stream. Finds out what the user may watch, and follows the namespace filter.

import { Live, type Observable, type Schedule, type TokenSource } from '@kubecast/sdk';
import { pathsOf, type Kinds, type WatchName } from './kinds.ts';

/**
 * A stream is refused as a whole if nothing at all may be seen of one of its watches, so less and less is
 * asked for. Who may see jobs only gets jobs. Who may see some namespaces is shown these, whether he may
 * list namespaces or not.
 */
const ladder: readonly (readonly WatchName[])[] = [
  ['jobs', 'pods', 'namespaces'],
  ['jobs', 'pods'],
  ['jobs', 'namespaces'],
  ['jobs'],
  ['pods'],
  ['namespaces'],
];

export interface FeedState {
  /** Empty: all namespaces. */
  readonly namespace: string;
  readonly live: Live<Kinds>;
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
  readonly gateway?: string;
  readonly schedule?: Schedule;
  readonly random?: () => number;
}

export class Feed implements Observable<FeedState> {
  readonly #options: FeedOptions;
  readonly #listeners = new Set<() => void>();
  // Asked for in every namespace, and the same from each, so it is learned once.
  #mayListNamespaces = true;
  #state: FeedState;
  #closed = false;

  constructor(options: FeedOptions) {
    this.#options = options;
    this.#state = this.#connect(options.namespace, this.#rungAfter(-1), undefined, undefined);
  }

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  readonly getSnapshot = (): FeedState => this.#state;

  /** Watches another namespace, or all. Rows that are in sight both before and after stay on screen. */
  setNamespace(namespace: string): void {
    if (this.#closed || namespace === this.#state.namespace) return;
    this.#become(this.#connect(namespace, this.#rungAfter(-1), undefined, this.#state));
  }

  /** Tries at once what is being waited for, or again what was refused. */
  retry(): void {
    if (this.#closed) return;
    if (!this.#state.live.closed) {
      this.#state.live.retryNow();
      return;
    }
    this.#mayListNamespaces = true;
    this.#become(this.#connect(this.#state.namespace, 0, undefined, this.#state));
  }

  close(): void {
    this.#closed = true;
    this.#state.live.close();
  }

  #connect(namespace: string, rung: number, refusal: string | undefined, before: FeedState | undefined): FeedState {
    const { token, session, gateway, schedule, random } = this.#options;
    const watches = ladder[rung] ?? [];
    const live: Live<Kinds> = new Live<Kinds>({
      gateway,
      token,
      session,
      schedule,
      random,
      watches: pathsOf(watches, namespace),
      seed: before && seedFrom(before, namespace),
    });
    live.connection.subscribe(() => this.#onConnection(live, rung));
    if (namespace === '') for (const name of tables(watches)) live.collection(name).subscribe(() => this.#onRows(live));
    return { namespace, live, watches, refusal, forbidden: false, visible: before?.visible };
  }

  #onConnection(live: Live<Kinds>, rung: number): void {
    if (this.#closed || live !== this.#state.live) return;
    const { phase, reason, message } = live.connection.getSnapshot();
    // The only difference between these two rungs is the namespaces.
    if (phase === 'live' && (rung === 1 || rung === 3)) this.#mayListNamespaces = false;
    if (phase !== 'denied' || reason !== 'http:403') return;
    const next = this.#rungAfter(rung);
    // The first refusal names what the page was opened for.
    const refusal = this.#state.refusal ?? message;
    if (next === -1) this.#become({ ...this.#state, refusal, forbidden: true, visible: this.#state.namespace === '' ? undefined : this.#state.visible });
    else this.#become(this.#connect(this.#state.namespace, next, refusal, this.#state));
  }

  #onRows(live: Live<Kinds>): void {
    if (this.#closed || live !== this.#state.live) return;
    const told = tables(this.#state.watches).map((name) => live.collection(name).getSnapshot());
    // What restricts a watch is told before its rows.
    if (told.some(({ phase, namespaces }) => phase === 'loading' && !namespaces)) return;
    const visible = union(told.map(({ namespaces }) => namespaces));
    if (visible?.join() !== this.#state.visible?.join()) this.#become({ ...this.#state, visible });
  }

  #rungAfter(rung: number): number {
    return ladder.findIndex((watches, n) => n > rung && (this.#mayListNamespaces || !watches.includes('namespaces')));
  }

  #become(state: FeedState): void {
    if (state.live !== this.#state.live) this.#state.live.close();
    this.#state = state;
    for (const listener of [...this.#listeners]) listener();
  }
}

const tables = (watches: readonly WatchName[]): ('jobs' | 'pods')[] => watches.filter((name) => name !== 'namespaces');

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

// The one stream of all tabs, in the tab that leads them.

import { backoff } from '../backoff.ts';
import { Client } from '../client.ts';
import type { ClientOptions } from '../clientoptions.ts';
import { connect, type Connect } from '../connection.ts';
import { sleep } from '../deadline.ts';
import type { StreamEvent } from '../events.ts';
import { refusalOf } from '../refusals.ts';
import { streamPath } from '../resource.ts';
import type { Frame } from '../parser.ts';
import { isFinal, type ConnectionState, type Trouble } from '../state.ts';
import { isPartial } from './tabStream.ts';
import { WatchReplica } from './watchReplica.ts';
import { partsOf, placeOf, type Answered, type Asked, type Cursor, type Told } from './protocol.ts';

/** How many frames are kept for those who come back from behind them. */
const ring = 1_000;
/** As many watches as a stream of the gateway's may have. */
const mostWatches = 32;
/** How fresh what was heard of the gateway has to be for who attaches, in milliseconds. */
const fresh = 2_000;
/** How long a watch is carried that nobody wants any more, in milliseconds. */
const linger = 2_000;
/** How often those who come may end the wait for a stream that is lost, in milliseconds: each of many tabs tries again by itself. */
const impatience = 5_000;
/** How long after a take-over the others may say where they are, in milliseconds. */
const gathering = 150;

export interface LeaderOptions {
  readonly id: string;
  readonly gateway: string;
  readonly client: Pick<ClientOptions, 'token' | 'session' | 'heartbeat' | 'openTimeout' | 'fetch' | 'random'>;
  /** Where the leader before this one was when this tab last heard of it. */
  readonly base: Cursor | undefined;
  readonly tell: (told: Told) => void;
  readonly answer: (tab: string, answer: Answered) => void;
  /** Calls back when a tab is gone. */
  readonly onGone: (tab: string, gone: () => void) => void;
  /** Nobody is signed in here any more. Another tab may be. */
  readonly denied: (message: string) => void;
  readonly random: () => string;
}

interface Watched {
  readonly path: string;
  readonly replica: WatchReplica;
  /** Since when it is known that nobody has it. */
  idle?: number | undefined;
}

interface Attached {
  readonly tab: string;
  readonly turn: number;
  readonly paths: readonly (readonly [string, string])[];
  readonly position: string;
  /** Of the tab stream's names those on the gateway's stream. */
  names: Map<string, string>;
  waiting: boolean;
  /** What was heard of the gateway until then does not count. */
  readonly since: number;
}

export class Leader {
  readonly #options: LeaderOptions;
  readonly #watches = new Map<string, Watched>();
  readonly #streams = new Map<string, Attached>();
  readonly #tabs = new Set<string>();
  readonly #ring: Frame[] = [];
  /** Where this one went on. */
  #base: Cursor | undefined;
  #seq: number;
  /** Told by the stream, and not yet to the tabs. */
  #news: Frame[] | undefined;
  #client: Client | undefined;
  #position: string;
  #carried: readonly string[] = [];
  #lastActivity = -Infinity;
  #woken = 0;
  /** Why the stream is lost, as it was told. */
  #toldLost = '';
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #pruning: ReturnType<typeof setTimeout> | undefined;
  #sifting = false;
  /** Ends the wait for another attempt to find out who is refused. */
  #again = new AbortController();
  #closed = false;

  constructor(options: LeaderOptions) {
    this.#options = options;
    this.#base = options.base;
    this.#seq = options.base?.seq ?? 0;
    this.#position = options.base?.id ?? '';
    this.#woken = performance.now();
    options.tell({ leader: options.id, kind: 'lead', base: options.base });
    this.#gathering = setTimeout(() => {
      this.#gathering = undefined;
      this.#follow();
    }, options.base ? gathering : 0);
  }

  get cursor(): Cursor {
    return { leader: this.#options.id, seq: this.#seq, id: this.#position };
  }

  hear(asked: Asked): void {
    if (this.#closed) return;
    if (asked.kind === 'ping') this.beat();
    else if (asked.kind === 'detach') this.#leave([asked.stream]);
    else if (asked.kind === 'attach') this.#attach(asked);
  }

  /** What was not just heard of is looked at; a wait for it ends, unless the last one ended so many milliseconds ago or less. */
  wake(patience = 0, doubted = false): void {
    const now = performance.now();
    if (this.#gathering || (!doubted && now - this.#lastActivity <= fresh)) return;
    const state = this.#client?.state;
    const up = state && !state.error && state.status !== 'loading';
    if (!up && now - this.#woken < patience) return;
    this.#woken = now;
    this.#client?.wake();
    this.#again.abort();
  }

  beat(kind: 'beat' | 'hidden' = 'beat'): void {
    this.#options.tell({ leader: this.#options.id, kind });
  }

  /** Lets go of the stream. The next leader goes on from the cursor. */
  close(): void {
    if (this.#closed) return;
    this.#flush();
    this.#closed = true;
    clearTimeout(this.#gathering);
    clearTimeout(this.#pruning);
    this.#client?.close();
    this.#again.abort();
    this.#options.tell({ leader: this.#options.id, kind: 'resign' });
  }

  #attach({ tab, stream, turn, paths, position, doubted }: Asked & { kind: 'attach' }): void {
    // It asks again. Another plan would leave it with watches that nobody is known to have.
    if (this.#streams.get(stream)?.turn === turn) return;
    if (!this.#tabs.has(tab)) {
      this.#tabs.add(tab);
      this.#options.onGone(tab, () => {
        this.#tabs.delete(tab);
        this.#leave([...this.#streams].filter(([, other]) => other.tab === tab).map(([id]) => id));
      });
    }
    this.#adopt(position);
    const attached: Attached = { tab, turn, paths, position, names: new Map(), waiting: true, since: doubted ? performance.now() : -Infinity };
    this.#streams.set(stream, attached);
    const names = this.#plan(attached);
    if (!names) {
      this.#refuse(stream, 0, '');
      return;
    }
    attached.names = names;
    for (const name of names.values()) this.#use(name);
    this.#follow();
    this.wake(impatience, doubted);
    this.#welcome();
  }

  /** The first that comes may bring the gateway's position along from a leader that nobody here has heard of, as from a disk. */
  #adopt(position: string): void {
    const place = placeOf(position);
    if (this.#base || this.#client || !this.#gathering || this.#watches.size > 0 || place?.id === undefined) return;
    this.#base = { leader: place.leader, seq: place.seq, id: place.id };
    this.#seq = place.seq;
    this.#position = place.id;
  }

  /** By which names a tab stream has its watches; those that nobody has yet are begun. Undefined if these are too many. */
  #plan({ paths, position }: Attached): Map<string, string> | undefined {
    const names = new Map<string, string>();
    for (const [own, path] of paths) {
      const old = this.#resumable(position)?.get(own);
      if (old !== undefined && (this.#watches.get(old)?.path ?? path) === path && (this.#watches.has(old) || this.#gathering)) {
        if (!this.#watches.has(old)) this.#watches.set(old, { path, replica: new WatchReplica(true, isPartial(path)) });
        names.set(own, old);
        continue;
      }
      let [name] = [...this.#watches].find(([, watched]) => watched.path === path && !watched.replica.dark) ?? [];
      if (name === undefined) {
        if (this.#watches.size >= mostWatches) return undefined;
        // Never the same one twice: an old position that names it would have it go on from there.
        name = `w${this.#options.random()}`;
        this.#watches.set(name, { path, replica: new WatchReplica(false, isPartial(path)) });
      }
      names.set(own, name);
    }
    return names;
  }

  #use(name: string): void {
    const watched = this.#watches.get(name);
    if (watched) watched.idle = undefined;
  }

  /** What a position names, if the frames behind it are still there. */
  #resumable(position: string): ReadonlyMap<string, string> | undefined {
    const { id } = this.#options;
    const base = this.#base;
    const place = placeOf(position);
    if (!place || place.seq > this.#seq || place.seq < this.#seq - this.#ring.length) return undefined;
    return place.leader === id || (place.leader === base?.leader && place.seq === base.seq) ? place.names : undefined;
  }

  /** Answers those whose watches the stream carries, if it was just heard of. */
  #welcome(): void {
    if (!this.#client || performance.now() - this.#lastActivity > fresh) return;
    this.#flush();
    for (const [stream, attached] of this.#streams) {
      if (!attached.waiting || this.#lastActivity <= attached.since) continue;
      // What they could go on from may be gone by now, or what is known may be enough.
      const names = this.#plan(attached);
      if (!names) {
        this.#refuse(stream, 0, '');
        continue;
      }
      attached.names = names;
      for (const name of names.values()) this.#use(name);
      if (![...names.values()].every((name) => this.#carried.includes(name) && !this.#watches.get(name)?.replica.old)) continue;
      attached.waiting = false;
      const done: string[] = [];
      const frames: Frame[] = [];
      const tell = (own: string, told: readonly Frame[]): void => {
        for (const frame of told) frames.push({ ...frame, event: `${own}.${frame.event}` });
      };
      const place = this.#resumable(attached.position);
      for (const [own, name] of names) {
        const { replica } = this.#watches.get(name) ?? {};
        if (!replica) continue;
        if (place?.get(own) !== name) {
          tell(own, replica.frames());
          continue;
        }
        done.push(own);
        tell(own, replica.standing);
        const missed = this.#ring.slice(this.#ring.length - (this.#seq - (placeOf(attached.position)?.seq ?? this.#seq)));
        tell(own, missed.filter((frame) => partsOf(frame)[0] === name).map((frame) => ({ ...frame, event: partsOf(frame)[1] })));
        // Something is said at once, or it would seem as if nobody was there.
        tell(own, [{ event: 'bookmark', data: '{"resourceVersion":""}', id: '' }]);
      }
      this.#options.answer(attached.tab, { leader: this.#options.id, kind: 'go', stream, turn: attached.turn, at: this.cursor, names: [...names], done, frames });
    }
    this.#follow();
  }

  #refuse(stream: string, status: number, message: string): void {
    const tab = this.#streams.get(stream)?.tab;
    if (tab === undefined) return;
    this.#leave([stream]);
    this.#options.answer(tab, { leader: this.#options.id, kind: 'refused', stream, status, message });
  }

  #leave(streams: readonly string[]): void {
    for (const stream of streams) this.#streams.delete(stream);
    this.#pruning ??= setTimeout(() => this.#prune(), linger / 4);
  }

  /** Who has lost a stream comes back to go on, but not before it is there again. */
  #prune(): void {
    this.#pruning = undefined;
    if (this.#closed) return;
    if (this.#lastActivity === -Infinity) {
      this.#pruning = setTimeout(() => this.#prune(), linger);
      return;
    }
    const used = new Set([...this.#streams.values()].flatMap(({ names }) => [...names.values()]));
    const now = performance.now();
    let kept = false;
    for (const [name, watched] of this.#watches) {
      // Of each by itself: one that was left a moment ago may be on its way back, whatever was left before.
      watched.idle = used.has(name) ? undefined : (watched.idle ?? now);
      if (watched.idle === undefined) continue;
      if (now - watched.idle >= linger) this.#watches.delete(name);
      else kept = true;
    }
    if (kept) this.#pruning = setTimeout(() => this.#prune(), linger / 4);
    this.#follow();
  }

  /** Brings the stream to what the tabs want. */
  #follow(): void {
    if (this.#gathering || this.#closed || this.#sifting) return;
    if (this.#watches.size === 0) {
      const client = this.#client;
      this.#client = undefined;
      client?.close();
      return;
    }
    const url = this.#options.gateway + streamPath(Object.fromEntries([...this.#watches].map(([name, { path }]) => [name, path])));
    if (this.#client && !isFinal(this.#client.state)) {
      this.#client.follow(url);
      return;
    }
    const client: Client = new Client({
      ...this.#options.client,
      share: () => this.#open,
      url,
      lastEventId: this.#position,
      onOpen: (resumed, opened, behind) => {
        if (this.#closed) return;
        this.#carried = [...new URLSearchParams(opened.slice(opened.indexOf('?'))).keys()];
        for (const [name, { replica }] of this.#watches) {
          if (this.#carried.includes(name)) this.#add(name, replica.opened(resumed, behind));
        }
        this.#welcome();
      },
      onEvent: (event, frame) => {
        if (!this.#closed && !this.#take(event, frame)) client.startOver();
      },
      onState: (state) => {
        if (!this.#closed && client === this.#client) this.#onState(state);
      },
    });
    this.#client = client;
  }

  readonly #open: Connect = async (request, signal) => {
    let woken = -Infinity;
    const connection = await connect({
      ...request,
      onGap: () => {
        woken = performance.now();
        request.onGap();
      },
    }, signal);
    let proven = false;
    const heard = async (): Promise<readonly Frame[]> => {
      const frames = await connection.next();
      // One that only says goodbye, as while its cluster is away, was never there.
      const ends = frames.some(({ event }) => event === 'goodbye');
      proven ||= !ends && frames.length > 0;
      // What comes at once when this page runs again may be from before it stood still.
      if (proven && !ends && performance.now() - woken > fresh) {
        this.#lastActivity = performance.now();
        this.#toldLost = '';
        this.#say([]);
      }
      return frames;
    };
    return {
      resumed: connection.resumed,
      get lastEventId() {
        return connection.lastEventId;
      },
      get retry() {
        return connection.retry;
      },
      next: heard,
      close: () => connection.close(),
    };
  };

  #take(event: StreamEvent, frame: Frame): boolean {
    if (event.type === 'expiring') return true; // that is for the leader
    const replica = this.#watches.get(event.watch)?.replica;
    const [before, after] = (replica ? replica.apply(event, frame) : [[], []]) ?? [];
    if (!before || !after) return false;
    this.#add(event.watch, before);
    this.#say([frame]);
    this.#add(event.watch, after);
    return true;
  }

  #add(name: string, frames: readonly Frame[]): void {
    if (frames.length > 0) this.#say(frames.map((frame) => ({ ...frame, event: `${name}.${frame.event}` })));
  }

  #say(frames: readonly Frame[]): void {
    if (this.#closed) return;
    if (!this.#news) {
      this.#news = [];
      queueMicrotask(() => {
        this.#flush();
        this.#welcome();
      });
    }
    for (const frame of frames) this.#news.push(frame);
  }

  /** What came with one chunk is told at once. */
  #flush(): void {
    const frames = this.#news;
    this.#news = undefined;
    if (!frames || this.#closed) return;
    this.#seq += frames.length;
    for (const frame of frames) this.#ring.push(frame);
    if (this.#ring.length > 1.5 * ring) this.#ring.splice(0, this.#ring.length - ring);
    this.#position = this.#client?.lastEventId ?? this.#position;
    this.#options.tell({ leader: this.#options.id, kind: 'frames', at: this.cursor, frames });
  }

  #onState(state: ConnectionState): void {
    const { error, retryAt } = state;
    if (!error) return;
    const said = `${error.reason} ${error.message}`;
    if (isFinal(state)) void this.#sift(error);
    else if (retryAt !== undefined || said !== this.#toldLost) this.#lose(error, said); // else the wait is over, and the next attempt begins
  }

  #lose({ reason, message }: Trouble, said = ''): void {
    this.#lastActivity = -Infinity;
    this.#flush();
    this.#toldLost = said;
    this.#options.tell({ leader: this.#options.id, kind: 'lost', reason, message });
  }

  /** The stream is refused as a whole: for one of its watches, or for all of them. */
  async #sift({ reason, message }: Trouble): Promise<void> {
    const { client, denied } = this.#options;
    if (reason === 'http:401') {
      denied(message);
      return;
    }
    this.#sifting = true;
    const names = [...this.#watches];
    const as = { ...client, ...this.#options };
    let answers = await Promise.all(names.map(([, { path }]) => refusalOf(as, path)));
    // The stream was refused in the words of one.
    if (answers.filter(Boolean).length > 1) answers = await Promise.all(names.map(async ([, { path }], n) => answers[n] && refusalOf(as, path, 'GET')));
    else answers = answers.map((answer) => answer && { reason, message: message.replace(/^w\w+: /, '') }); // without its name
    const found = answers.some(Boolean);
    const unsure = !found && answers.includes(null);
    if (unsure && !this.#closed) {
      // Until somebody knows all have only lost it. Browsers come back spread over 16 s.
      this.#lose({ reason: 'network', message });
      await sleep(backoff({ failures: 4 }, client.random), (this.#again = new AbortController()).signal);
    }
    this.#sifting = false;
    if (this.#closed) return;
    // If it was none of them, it was what they are together.
    const refused = new Map(names.map(([name], n) => [name, found || unsure ? answers[n] : { reason, message }]));
    for (const [stream, attached] of [...this.#streams]) {
      const told = [...attached.names.values()].map((name) => refused.get(name)).find(Boolean);
      if (told) this.#refuse(stream, Number(told.reason.slice(5)) || 500, told.message);
    }
    for (const [name, answer] of refused) if (answer) this.#watches.delete(name);
    this.#follow();
  }
}

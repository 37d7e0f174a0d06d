// Keeps one event stream going: reconnects, resumes, renews the token, and says how it stands.

import { abort, childOf, onAbort, reasonOf } from './abort.ts';
import { backoff } from './backoff.ts';
import type { ClientOptions } from './clientoptions.ts';
import { connect, type Stream } from './connection.ts';
import { Credentials } from './credentials.ts';
import { sleep } from './deadline.ts';
import { again, endOf, goodbye, type End } from './end.ts';
import { decodeFrame } from './events.ts';
import { lost, Lost, textOf } from './lost.ts';
import type { Frame } from './parser.ts';
import { closed, isFinal, isSame, unknown, type ConnectionState, type Status, type Trouble } from './state.ts';

/** How long one waits, in milliseconds, for news of a stream before that is taken for lost, or for a slow one's successor. */
const patience = 2_000;
const silent = { reason: 'silent', message: '' };

/** The next stream, which is opened while the present one goes on. */
interface Successor {
  readonly url: string;
  readonly token: string | undefined;
  readonly abort: AbortController;
  readonly timer: ReturnType<typeof setTimeout>;
  /** What the present stream says is no longer held back for it. */
  overdue?: boolean;
  /** It has said something, or failed. */
  outcome?: { readonly connection: Stream; readonly frames: readonly Frame[] } | { readonly error: Lost };
}

/** What the present stream has said, or why it has ended. */
type Said = { readonly frames: readonly Frame[] } | { readonly error: Lost };

/** Follows one stream: connects, resumes behind what it was told, and says how current that is. {@link Kubecast} keeps what it tells. */
export class Client {
  readonly #options: ClientOptions;
  readonly #credentials: Credentials;
  readonly #abort = new AbortController();
  #state: ConnectionState;
  #url: string;
  #lastEventId: string;
  #retry: number | undefined;
  #failures = 0;
  #startOver = false;
  #paused = false;
  /** Ends the wait for the next attempt. */
  #wake: (() => void) | undefined;
  /** Lets who reads the present stream look around. */
  #ring: () => void = () => undefined;

  /** From the question for a token to the end of the stream, and since when. */
  #attempt: AbortController | undefined;
  #attemptBegan = 0;
  #connection: Stream | undefined;
  /** The address of the present stream. */
  #opened = '';
  /** It has said something. */
  #proven = false;
  #delivered = false;
  /** When something was last heard of a gateway that was up to date; undefined: never. */
  #asOf: number | undefined;
  /** The watches whose data is old, by the gateway's own word. */
  readonly #stale = new Map<string, { since: number; reason: string }>();
  /** How long what it says may be held back. */
  #patience = patience;
  /** The position behind which nothing could be read. */
  #poisoned: string | undefined;
  #successor: Successor | undefined;
  /** Of the present stream, if it was a successor. */
  #held: AbortController | undefined;
  /** Somebody doubts that the present stream stands. */
  #doubted = false;
  /** What it says may be from before this page stood still, and proves nothing. */
  #distrusted = false;

  /** Connects at once. All that happens is told through the callbacks, never before this returns. */
  constructor(options: ClientOptions) {
    this.#options = options;
    this.#credentials = new Credentials(options);
    this.#url = options.url;
    this.#lastEventId = options.lastEventId ?? '';
    this.#asOf = options.asOf;
    this.#state = { ...unknown, ...(options.asOf !== undefined && { status: 'stale', reason: 'reconnecting' }), asOf: options.asOf, retryAt: undefined };
    onAbort(this.#abort.signal, onAbort(options.signal, () => this.close()));
    void this.#run();
  }

  get state(): ConnectionState {
    return this.#state;
  }

  /** The position after the last event that `onEvent` was given; opaque. */
  get lastEventId(): string {
    return this.#lastEventId;
  }

  /** When something was last heard of a gateway that was up to date, in milliseconds since the epoch; undefined: never. */
  get asOf(): number | undefined {
    return this.#asOf;
  }

  /** Ends the stream for good. Nothing is called afterwards but `onState` with `failed`. */
  close(): void {
    this.#abort.abort();
    this.#setState(closed, undefined, 'failed');
  }

  /**
   * For a page that is shown again or online again, or whose machine has slept. Ends a wait. A stream that looks open may have
   * been dead for long: another is opened beside it, from its position, and takes its place unless the old one speaks first.
   * If neither has spoken after two seconds, it is `stale` (`reconnecting`).
   */
  wake(): void {
    if (this.#wake) {
      this.#wake();
    } else if (this.#connection) {
      this.#doubted = true;
      this.#ring();
    } else if (performance.now() - this.#attemptBegan > patience) {
      this.#interrupt(); // asked on a connection, or of a source, that may be dead as well
    }
  }

  #stoodStill(): void {
    this.#dismiss(); // that is as old
    this.#distrusted = true;
    this.wake();
  }

  /**
   * Goes over to another address from the present position, which the new stream takes for as much as it knows of it (wire.md,
   * rule 4). The old one goes on until the new one has said something.
   */
  follow(url: string): void {
    if (url === this.#url) return;
    this.#url = url;
    if (this.#connection) this.#ring();
    else this.#interrupt();
  }

  /** Lets go of the stream and keeps the position, until {@link resume}. */
  pause(): void {
    this.#paused = true;
    this.#interrupt();
    this.#wake?.();
    this.#setState(undefined, undefined, 'stale', 'paused');
  }

  resume(): void {
    this.#paused = false;
    this.#wake?.();
  }

  /** Forgets the position and connects anew, so that everything is told again. */
  startOver(): void {
    this.#startOver = true;
    this.#interrupt(new Lost('inconsistent', 'events lost'));
    this.#wake?.();
  }

  #interrupt(reason = again): void {
    if (this.#attempt) abort(this.#attempt, reason);
  }

  async #run(): Promise<void> {
    // The caller has the client in hand before anything is told.
    await Promise.resolve();
    while (!this.#abort.signal.aborted) {
      if (this.#paused) {
        await this.#sleep(undefined);
        continue;
      }
      if (this.#state.reason === 'paused') this.#setState();
      const end = await this.#try();
      if (this.#abort.signal.aborted) return;
      if (end?.status) {
        this.#abort.abort();
        this.#setState(end, undefined, end.status);
      } else if (end && !this.#paused) await this.#wait(end);
    }
  }

  /** One attempt, from its request to the end of its stream; undefined: the next one may follow at once. */
  async #try(): Promise<End | undefined> {
    this.#delivered = false;
    if (this.#startOver) this.#lastEventId = '';
    this.#startOver = false;
    const attempt = (this.#attempt = childOf(this.#abort.signal));
    this.#attemptBegan = performance.now();
    try {
      const token = await this.#credentials.take(attempt.signal);
      const url = this.#url;
      const connection = await this.#open(url, token, attempt.signal);
      if (attempt.signal.aborted) throw reasonOf(attempt.signal);
      this.#adopt(connection, url, token);
      return await this.#read(attempt.signal);
    } catch (thrown) {
      const error = lost(attempt.signal.aborted ? reasonOf(attempt.signal) : thrown);
      const { reason } = error;
      const renewed = this.#credentials.ended(error);
      if (error === again) return undefined;
      if (reason === 'unreadable') {
        // What cannot be read twice from the same position is not asked for a third time.
        if (this.#poisoned === this.#lastEventId) this.#startOver = true;
        this.#poisoned = this.#lastEventId;
      }
      return renewed ? undefined : endOf(error, this.#delivered);
    } finally {
      this.#dismiss();
      this.#attempt = undefined;
      this.#connection?.close();
      this.#connection = undefined;
      this.#doubted = false;
      attempt.abort();
    }
  }

  async #wait(end: End): Promise<void> {
    this.#failures = end.failed ? this.#failures + 1 : 0;
    const wait = { failures: this.#failures, retry: this.#retry, retryAfter: end.retryAfter };
    const delay = backoff(wait, this.#options.random);
    this.#setState(end, Date.now() + delay);
    await this.#sleep(delay);
    if (!this.#paused) this.#setState(end);
  }

  /** Ends early when it is woken, or the client is closed. Without a delay only then. */
  async #sleep(delay: number | undefined): Promise<void> {
    const woken = childOf(this.#abort.signal);
    this.#wake = () => woken.abort();
    await sleep(delay, woken.signal);
    woken.abort();
    this.#wake = undefined;
  }

  async #open(url: string, token: string | undefined, signal: AbortSignal): Promise<Stream> {
    const { token: bearer, session, share, fetch = globalThis.fetch } = this.#options;
    const heartbeat = Math.min(Math.max(this.#options.heartbeat ?? 15_000, 5_000), 60_000);
    const request = {
      url: askFor(url, heartbeat),
      // A session is named, but not sent: the browser does that.
      token: bearer && token,
      cookies: !bearer && session !== undefined,
      openTimeout: this.#options.openTimeout ?? 20_000,
      silence: heartbeat * 2.5,
      onGap: () => this.#stoodStill(),
      doubted: this.#doubted,
      // What no header can carry is no position of Kubecast's, and fetch would throw at it for ever.
      lastEventId: /^[\x21-\x7e]*$/.test(this.#lastEventId) ? this.#lastEventId : '',
      // The global one is looked up per request, so that it may be replaced while the stream lives.
      fetch,
    };
    // What it throws itself no other attempt mends; its streams may be lost like any other.
    const open = this.#call(() => share?.(this.#options)) ?? connect;
    return open(request, signal);
  }

  #adopt(connection: Stream, url: string, token: string | undefined): void {
    if (this.#connection !== connection) this.#connection?.close();
    this.#connection = connection;
    this.#opened = url;
    this.#credentials.use(token);
    const behind = connection.resumed && (this.#state.status !== 'live' || this.#doubted);
    this.#proven = false;
    this.#doubted = this.#distrusted = false;
    this.#patience = patience;
    this.#stale.clear();
    this.#call(() => this.#options.onOpen?.(connection.resumed, url, behind));
  }

  /** Reads until the end, which it throws. While a successor is being opened, it decides which of the two goes on. */
  async #read(attempt: AbortSignal): Promise<never> {
    onAbort(attempt, () => this.#ring());
    let said: Said | undefined;
    let reading = this.#next();
    for (;;) {
      const bell = new Promise<undefined>((resolve) => (this.#ring = () => resolve(undefined)));
      this.#reconcile();
      // What was said is held back while there is hope for a successor: that would be told the same again.
      if (!said || this.#successor) said = (await Promise.race(said ? [bell] : [bell, reading])) ?? said;
      if (attempt.aborted) throw reasonOf(attempt);
      const successor = this.#successor;
      if (successor?.outcome) {
        this.#successor = undefined;
        clearTimeout(successor.timer);
        if ('connection' in successor.outcome) {
          const { connection, frames } = successor.outcome;
          this.#adopt(connection, successor.url, successor.token);
          this.#held?.abort(); // or the attempt would keep what it has of each, and a page changes its watches all day
          this.#held = successor.abort;
          this.#deliver(frames, connection, attempt);
          said = undefined;
          reading = this.#next();
          continue;
        }
        this.#survive(successor, successor.outcome.error);
      } else if (successor?.overdue && (this.#distrusted || !said) && this.#probes(successor)) {
        this.#setState(silent); // unless one of the two says something
        this.#distrusted &&= said !== undefined; // what comes from here on is new
      }
      if (!said || !this.#connection) continue;
      if ('error' in said) {
        if (!this.#successor) throw said.error;
        // It is all there is.
        this.#setState(endOf(said.error, true));
        continue;
      }
      if (this.#successor && !this.#successor.overdue && (this.#distrusted || !this.#probes(this.#successor))) continue;
      // What has waited here, or is left, from before proves nothing.
      if (!this.#distrusted) this.#giveUpSuccessor();
      this.#deliver(said.frames, this.#connection, attempt);
      this.#distrusted = false;
      said = undefined;
      reading = this.#next();
    }
  }

  async #next(): Promise<Said> {
    try {
      const frames = await this.#connection?.next();
      return frames ? { frames } : { error: new Lost('ended', '') }; // as a clean end was told before
    } catch (error) {
      return { error: lost(error) };
    }
  }

  /** Sees to it that a successor is on its way if one is wanted, and that it is the right one. */
  #reconcile(): void {
    const url = this.#url;
    const token = this.#credentials.wanted;
    const present = this.#successor;
    if (present?.url === url && present.token === token) return;
    if (url === this.#opened && token === this.#credentials.token && !this.#doubted) this.#dismiss();
    else this.#succeed(url, token);
  }

  #succeed(url: string, token: string | undefined): void {
    this.#dismiss();
    const abort = childOf(this.#attempt?.signal);
    const timer = setTimeout(() => {
      successor.overdue = true;
      this.#ring();
    }, this.#patience);
    const successor: Successor = { url, token, abort, timer };
    this.#successor = successor;
    void this.#prove(successor).then(
      (outcome) => (successor.outcome = outcome),
      (error: unknown) => (successor.outcome = { error: lost(error) }),
    ).finally(() => this.#ring());
  }

  /** Opens a stream and waits until it says something. One that only says goodbye takes nobody's place. */
  async #prove({ url, token, abort }: Successor): Promise<NonNullable<Successor['outcome']>> {
    const connection = await this.#open(url, token, abort.signal);
    for (;;) {
      const frames = await connection.next();
      const [first] = frames;
      if (!first) continue;
      const event = decodeFrame(first);
      if (event.type !== 'goodbye') return { connection, frames };
      this.#retry = connection.retry ?? this.#retry;
      throw goodbye(event.reason);
    }
  }

  /** Of the same address and with the same token as the present stream. */
  #probes(successor: Successor): boolean {
    return successor.url === this.#opened && successor.token === this.#credentials.token;
  }

  /** A successor has failed. Throws if the present stream is not what is wanted, or can hardly be better off. */
  #survive(successor: Successor, error: Lost): void {
    successor.abort.abort();
    const moves = successor.url !== this.#opened;
    this.#doubted = this.#distrusted = false;
    if (moves) this.#credentials.token = successor.token; // which is what was refused, if it was
    const { reason } = error;
    if (moves || (this.#probes(successor) && !/^(goodbye|http|unreadable)/.test(reason))) throw error;
    this.#credentials.keep(successor.token, !reason.startsWith('http'));
  }

  /** The present stream has spoken before its successor, which would tell that again. */
  #giveUpSuccessor(): void {
    const successor = this.#successor;
    if (!successor) return;
    this.#dismiss();
    this.#doubted = false;
    // Another address is wanted in any case: it has another try, from behind what was said, and longer.
    if (successor.url !== this.#opened) this.#patience *= 2;
    else this.#credentials.keep(successor.token, true);
  }

  #dismiss(): void {
    if (!this.#successor) return;
    clearTimeout(this.#successor.timer);
    this.#successor.abort.abort();
    this.#successor = undefined;
  }

  #deliver(frames: readonly Frame[], connection: Stream, attempt: AbortSignal): void {
    this.#retry = connection.retry ?? this.#retry;
    for (const frame of frames) {
      const event = decodeFrame(frame);
      this.#call(() => this.#options.onEvent(event, frame));
      this.#lastEventId = frame.id;
      if (attempt.aborted) throw reasonOf(attempt); // by the caller
      if (event.type === 'goodbye') throw goodbye(event.reason);
      if (event.type === 'expiring') {
        void this.#credentials.renew(attempt, () => this.#ring());
        continue;
      }
      this.#proven = true;
      if (event.type !== 'reset') this.#delivered = true;
      if (event.type === 'stale') this.#stale.set(event.watch, event);
      if (event.type === 'live') this.#stale.delete(event.watch);
    }
    this.#lastEventId = connection.lastEventId;
    if (!this.#proven || this.#distrusted) return;
    const [oldest] = [...this.#stale.values()].sort((a, b) => a.since - b.since);
    this.#asOf = oldest?.since ?? Date.now();
    this.#setState(undefined, undefined, oldest ? 'stale' : 'live', oldest?.reason);
  }

  #call<T>(callback: () => T): T {
    try {
      return callback();
    } catch (error) {
      console.error(error);
      throw new Lost('callback', textOf(error)); // going on would lose events in silence
    }
  }

  /** How it is from here on; by default, how it is without a stream. What is final stays so. */
  #setState(error?: Trouble, retryAt?: number, status: Status = this.#asOf === undefined ? 'loading' : 'stale', reason = status === 'stale' ? 'reconnecting' : undefined): void {
    const old = this.#state;
    if (isFinal(old)) return;
    const next = { status, reason, asOf: status === 'stale' ? this.#asOf : undefined, error, retryAt };
    if (isSame(next, old)) return;
    this.#state = next;
    try {
      this.#options.onState?.(this.#state);
    } catch (error) {
      console.error(error); // no reason to lose the stream
    }
  }
}

/** The server is to be heard of as often as silence is measured by. */
function askFor(url: string, heartbeat: number): string {
  if (/[?&]heartbeat=/.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}heartbeat=${heartbeat / 1_000}s`;
}

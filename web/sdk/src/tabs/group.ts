// The tabs of one browser that share a stream, as one of them sees it: who leads, and what is told.

import { Lost } from '../lost.ts';
import { Leader, type LeaderOptions } from './leader.ts';
import type { TabStream } from './tabStream.ts';
import type { Answered, Asked, Cursor, Told } from './protocol.ts';

/** As much of BroadcastChannel as is needed. */
export interface Channel {
  onmessage: ((event: never) => void) | null;
  postMessage(message: unknown): void;
  close(): void;
}

interface Message {
  readonly data: unknown;
}

/** As much of LockManager as is needed. */
export interface TabLocks {
  request(name: string, options: { signal?: AbortSignal; steal?: boolean }, callback: () => Promise<void>): Promise<unknown>;
}

/** What a tab has of its browser. */
export interface Surroundings {
  readonly locks: TabLocks;
  readonly channel: (name: string) => Channel;
  readonly visible: () => boolean;
  /** `look`: the page may have been shown or hidden; `stop`: it does not run for now; `go`: it does again. */
  readonly attend: (listener: (what: 'look' | 'stop' | 'go') => void) => () => void;
}

/** How often the leader is heard, in milliseconds. */
const beat = 500;
/** Silence after which it is asked whether it is there, and how long it may think. */
const silence = 1_000;
/** What the last leader has said is waited for this long, in milliseconds, before another begins. */
const drain = 100;
/** How long a group without tab streams is kept, in milliseconds: a client that has lost its stream is back soon, and wants to go on. */
const linger = 2_000;
const lostLinger = 40_000;
/** Ticks that come so late tell of a page that did not run, in milliseconds. */
const gap = 5_000;
/** Without a leader for so long, what was told is no longer called live. */
const leaderless = 5_000;

export class Group {
  readonly #name: string;
  readonly #browser: Surroundings;
  readonly #leaderOptions: Pick<LeaderOptions, 'gateway' | 'client'>;
  readonly #random: () => string;
  #tab = '';
  readonly #streams = new Map<string, TabStream>();
  readonly #asked = new Map<string, number>();
  #all: Channel | undefined;
  #own: Channel | undefined;
  #leading: Leader | undefined;
  /** What this tab has heard of the leader that it follows. */
  #cursor: Cursor | undefined;
  #leader: string | undefined;
  #lastActivity = 0;
  #pinged: number | undefined;
  #candidate: AbortController | undefined;
  /** Is aborted when this tab leads no more. */
  #over = new AbortController();
  #abdicate: () => void = () => undefined;
  #unattend: (() => void) | undefined;
  #rest: ReturnType<typeof setTimeout> | undefined;
  /** The stream is, as far as is known here. */
  #lost = false;
  /** Of clients that wait by themselves meanwhile: ends their wait. */
  readonly #waits = new Map<object, () => void>();
  #gone: AbortController | undefined;
  #timer: ReturnType<typeof setInterval> | undefined;
  #ticked = { at: 0, wall: 0 };

  constructor(name: string, browser: Surroundings, leading: Pick<LeaderOptions, 'gateway' | 'client'>, random: () => string) {
    this.#name = name;
    this.#browser = browser;
    this.#leaderOptions = leading;
    this.#random = random;
  }

  join(stream: TabStream): void {
    this.#streams.set(stream.id, stream);
    clearTimeout(this.#rest);
    this.#unattend ??= this.#browser.attend((what) => this.#attend(what));
    this.#start();
    this.#attach(stream);
  }

  leave(stream: TabStream): void {
    if (!this.#streams.delete(stream.id)) return;
    this.#asked.delete(stream.id);
    if (this.#lost) this.#waits.set(stream.client, stream.onGap);
    this.#ask({ kind: 'detach', stream: stream.id });
    clearTimeout(this.#rest);
    if (this.#streams.size > 0) return;
    this.#rest = setTimeout(() => {
      this.#unattend?.();
      this.#unattend = undefined;
      // A page that is looked at again goes on from there, if no other tab leads by then.
      const cursor = this.#cursor;
      this.#stop();
      this.#cursor = cursor;
    }, this.#lost ? lostLinger : linger);
  }

  #start(): void {
    if (this.#all) return;
    this.#tab = this.#random(); // whoever waits for the last one's end must not take this one for it
    this.#all = this.#browser.channel(this.#name);
    this.#all.onmessage = ({ data }: Message) => {
      this.#wakeUp();
      this.#hear(data as Asked | Told);
    };
    this.#own = this.#browser.channel(`${this.#name} ${this.#tab}`);
    this.#own.onmessage = ({ data }: Message) => {
      this.#wakeUp();
      this.#answer(data as Answered);
    };
    const gone = (this.#gone = new AbortController());
    // Held for as long as the tab is there: who waits for it learns when it is gone, however it went.
    const here = (): Promise<void> => new Promise((resolve) => gone.signal.addEventListener('abort', () => resolve()));
    this.#browser.locks.request(`${this.#name} ${this.#tab}`, { signal: gone.signal }, here).catch(() => undefined);
    this.#lastActivity = performance.now();
    this.#pinged = undefined;
    this.#ticked = { at: performance.now(), wall: Date.now() };
    this.#timer = setInterval(() => this.#tick(), beat);
    this.#campaign();
  }

  #stop(): void {
    clearInterval(this.#timer);
    this.#resign();
    this.#candidate?.abort();
    this.#candidate = undefined;
    this.#gone?.abort();
    this.#all?.close();
    this.#own?.close();
    this.#all = this.#own = undefined;
    this.#leader = this.#cursor = undefined;
  }

  #attend(what: 'look' | 'stop' | 'go'): void {
    if (what === 'stop') {
      this.#stop();
      // Said before it stands still: when it is seen again it does not call live what is old by then.
      for (const stream of [...this.#streams.values()]) {
        stream.detach();
        stream.fail(new Lost('silent', 'the page did not run'));
      }
      return;
    }
    this.#start();
    this.#wakeUp();
    if (!this.#browser.visible()) {
      // One that is seen leads, if there is one; its timers are not slowed down.
      this.#leading?.beat('hidden');
      if (this.#leading) return;
      this.#candidate?.abort();
      this.#candidate = undefined;
      return;
    }
    this.#campaign();
    this.#leading?.wake();
    this.#ask({ kind: 'visible' });
    for (const stream of this.#streams.values()) if (!stream.attached) this.#attach(stream);
  }

  /**
   * To be called first, whatever makes this page run: it may have stood still, and what was told to it meanwhile, which it hears
   * only now, proves of nobody that they are there. That is proven by an answer to what is asked from here on.
   */
  #wakeUp(): void {
    const now = performance.now();
    const late = Math.max(now - this.#ticked.at, Math.abs(Date.now() - this.#ticked.wall)) > gap;
    if (!late) return;
    this.#ticked = { at: now, wall: Date.now() };
    this.#lastActivity = now;
    this.#pinged = undefined;
    for (const stream of [...this.#streams.values()]) {
      stream.detach();
      stream.onGap();
      this.#attach(stream);
    }
  }

  #tick(): void {
    this.#wakeUp();
    const now = performance.now();
    this.#ticked = { at: now, wall: Date.now() };
    if (this.#leading) {
      this.#leading.beat();
      return;
    }
    for (const stream of [...this.#streams.values()]) {
      if (stream.deaf > leaderless) stream.fail(new Lost('silent', ''));
      if (!stream.attached && now - (this.#asked.get(stream.id) ?? 0) > silence) this.#attach(stream);
    }
    const quiet = now - this.#lastActivity;
    if (quiet <= silence) return;
    if (quiet > leaderless) this.#lose(new Lost('silent', ''));
    if (this.#pinged === undefined) {
      this.#pinged = now;
      this.#ask({ kind: 'ping' });
    } else if (now - this.#pinged > (this.#browser.visible() ? 1.5 * beat : 5 * beat)) {
      this.#pinged = now;
      this.#campaign(true);
    }
  }

  /** Waits for its turn to lead. A leader that does not answer is robbed of it. */
  #campaign(steal = false): void {
    if (this.#leading || !this.#all || (!steal && (this.#candidate || !this.#browser.visible()))) return;
    this.#candidate?.abort();
    const candidate = (this.#candidate = new AbortController());
    const lead = async (): Promise<void> => {
      if (this.#candidate !== candidate) return;
      if (this.#cursor) await new Promise((resolve) => setTimeout(resolve, drain));
      if (this.#candidate !== candidate || this.#leading) return;
      await new Promise<void>((resolve) => this.#lead(resolve));
    };
    const robbed = (): void => {
      if (this.#candidate !== candidate) return;
      this.#candidate = undefined;
      this.#resign();
      this.#campaign();
    };
    this.#browser.locks.request(`${this.#name} leads`, steal ? { steal } : { signal: candidate.signal }, lead).then(robbed, robbed);
  }

  #lead(abdicate: () => void): void {
    this.#abdicate = abdicate;
    const id = this.#random();
    for (const stream of this.#streams.values()) stream.detach();
    const base = this.#cursor;
    this.#leader = id;
    const over = (this.#over = new AbortController());
    this.#leading = new Leader({
      ...this.#leaderOptions,
      id,
      base,
      random: this.#random,
      tell: (told) => {
        this.#post(told);
        this.#follow(told);
      },
      answer: (tab, answer) => {
        if (tab === this.#tab) this.#answer(answer);
        else this.#post(answer, tab);
      },
      onGone: (tab, gone) => {
        if (tab === this.#tab) return;
        const waiting = this.#browser.locks.request(`${this.#name} ${tab}`, { signal: over.signal }, () => {
          gone();
          return Promise.resolve();
        });
        waiting.catch(() => undefined);
      },
      denied: (message) => {
        for (const stream of [...this.#streams.values()]) stream.fail(new Lost('http:401', message));
        this.#resign();
      },
    });
    for (const stream of this.#streams.values()) this.#attach(stream);
  }

  #resign(): void {
    const leading = this.#leading;
    if (!leading) return;
    leading.close();
    this.#over.abort();
    this.#leading = undefined;
    this.#leader = undefined;
    this.#lastActivity = performance.now();
    for (const stream of this.#streams.values()) stream.detach();
    this.#abdicate();
  }

  #attach(stream: TabStream): void {
    this.#asked.set(stream.id, performance.now());
    this.#ask({ kind: 'attach', tab: this.#tab, stream: stream.id, turn: stream.turn, paths: stream.paths, position: stream.position, visible: this.#browser.visible(), doubted: stream.doubted });
  }

  #ask(asked: Asked): void {
    if (this.#leading) this.#leading.hear(asked);
    else this.#post(asked);
  }

  #hear(said: Asked | Told): void {
    if ('leader' in said) {
      if (!this.#leading) this.#follow(said);
      else if (said.kind === 'lead') {
        this.#resign(); // robbed, and not told so yet
        this.#follow(said);
      }
    } else if (this.#leading) {
      const seen = said.kind === 'visible' || (said.kind === 'attach' && said.visible);
      if (seen && !this.#browser.visible()) {
        this.#resign();
        return;
      }
      if (said.kind === 'visible') this.#leading.wake();
      this.#leading.hear(said);
    }
  }

  #follow(told: Told): void {
    if (told.kind === 'lead' || this.#leader === undefined) {
      if (told.kind === 'resign') return;
      if (this.#leader !== told.leader) for (const stream of this.#streams.values()) stream.detach();
      this.#leader = told.leader;
      // Those who have heard less than the new leader has, or more, cannot go on from where they are.
      if (told.kind === 'lead') this.#cursor = told.base && { ...told.base, leader: told.leader };
      if (!this.#leading) for (const stream of this.#streams.values()) if (!stream.attached) this.#attach(stream);
    }
    if (told.leader !== this.#leader) return;
    this.#lastActivity = performance.now();
    this.#pinged = undefined;
    switch (told.kind) {
      case 'frames':
        this.#tellStreams(told.at, told.frames);
        this.#found();
        break;
      case 'lost':
        this.#lose(new Lost(told.reason, told.message));
        break;
      case 'hidden':
        if (this.#browser.visible() && !this.#leading) this.#ask({ kind: 'visible' });
        break;
      case 'resign':
        this.#leader = undefined;
        for (const stream of this.#streams.values()) stream.detach();
    }
  }

  #tellStreams(cursor: Cursor, frames: Parameters<TabStream['tell']>[1]): void {
    const last = this.#cursor;
    this.#cursor = cursor;
    const missed = last?.leader === cursor.leader && last.seq + frames.length !== cursor.seq;
    for (const stream of [...this.#streams.values()]) {
      if (missed && !this.#leading) {
        stream.detach();
        this.#attach(stream);
      } else stream.tell(cursor, frames);
    }
  }

  /** The stream is there again, for all who wait. */
  #found(): void {
    this.#lost = false;
    const waits = [...this.#waits.values()];
    this.#waits.clear();
    for (const wake of waits) wake();
  }

  #lose(error: Lost): void {
    this.#lost = true;
    for (const stream of [...this.#streams.values()]) stream.fail(error);
  }

  #answer(answer: Answered): void {
    const stream = this.#streams.get(answer.stream);
    if (!stream || (this.#leader !== undefined && answer.leader !== this.#leader)) return;
    this.#leader = answer.leader;
    if (answer.kind === 'go' && this.#cursor?.leader !== answer.leader) this.#cursor = answer.at;
    stream.answer(answer);
  }

  #post(message: unknown, tab?: string): void {
    if (tab === undefined) {
      this.#all?.postMessage(message);
      return;
    }
    const channel = this.#browser.channel(`${this.#name} ${tab}`);
    channel.postMessage(message);
    channel.close();
  }
}

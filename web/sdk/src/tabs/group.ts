// The tabs of one browser that share a stream, as one of them sees it: who leads, and what is told.

import { Lost, Refused } from '../lost.ts';
import { Hub, type HubOptions } from './hub.ts';
import type { Port } from './port.ts';
import type { Answered, Asked, Mark, Told } from './words.ts';

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
/** How long a group without ports is kept, in milliseconds: a client that has lost its stream is back soon, and wants to go on. */
const linger = 2_000;
const lostLinger = 40_000;
/** Ticks that come so late tell of a page that did not run, in milliseconds. */
const gap = 5_000;
/** Without a leader for so long, what was told is no longer called live. */
const leaderless = 5_000;

export class Group {
  readonly #name: string;
  readonly #browser: Surroundings;
  readonly #hubOptions: Pick<HubOptions, 'gateway' | 'client'>;
  readonly #random: () => string;
  #tab = '';
  readonly #ports = new Map<string, Port>();
  readonly #asked = new Map<string, number>();
  #all: Channel | undefined;
  #own: Channel | undefined;
  #hub: Hub | undefined;
  /** What this tab has heard of the leader that it follows. */
  #mark: Mark | undefined;
  #leader: string | undefined;
  #word = 0;
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

  constructor(name: string, browser: Surroundings, hub: Pick<HubOptions, 'gateway' | 'client'>, random: () => string) {
    this.#name = name;
    this.#browser = browser;
    this.#hubOptions = hub;
    this.#random = random;
  }

  join(port: Port): void {
    this.#ports.set(port.id, port);
    clearTimeout(this.#rest);
    this.#unattend ??= this.#browser.attend((what) => this.#attend(what));
    this.#start();
    this.#attach(port);
  }

  leave(port: Port): void {
    if (!this.#ports.delete(port.id)) return;
    this.#asked.delete(port.id);
    if (this.#lost) this.#waits.set(port.client, port.onGap);
    this.#ask({ kind: 'detach', port: port.id });
    clearTimeout(this.#rest);
    if (this.#ports.size > 0) return;
    this.#rest = setTimeout(() => {
      this.#unattend?.();
      this.#unattend = undefined;
      // A page that is looked at again goes on from there, if no other tab leads by then.
      const mark = this.#mark;
      this.#stop();
      this.#mark = mark;
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
    this.#word = performance.now();
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
    this.#leader = this.#mark = undefined;
  }

  #attend(what: 'look' | 'stop' | 'go'): void {
    if (what === 'stop') {
      this.#stop();
      // Said before it stands still: when it is seen again it does not call live what is old by then.
      for (const port of [...this.#ports.values()]) {
        port.detach();
        port.fail(new Lost('silent', 'the page did not run'));
      }
      return;
    }
    this.#start();
    this.#wakeUp();
    if (!this.#browser.visible()) {
      // One that is seen leads, if there is one; its timers are not slowed down.
      this.#hub?.beat('hidden');
      if (this.#hub) return;
      this.#candidate?.abort();
      this.#candidate = undefined;
      return;
    }
    this.#campaign();
    this.#hub?.wake();
    this.#ask({ kind: 'visible' });
    for (const port of this.#ports.values()) if (!port.attached) this.#attach(port);
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
    this.#word = now;
    this.#pinged = undefined;
    for (const port of [...this.#ports.values()]) {
      port.detach();
      port.onGap();
      this.#attach(port);
    }
  }

  #tick(): void {
    this.#wakeUp();
    const now = performance.now();
    this.#ticked = { at: now, wall: Date.now() };
    if (this.#hub) {
      this.#hub.beat();
      return;
    }
    for (const port of [...this.#ports.values()]) {
      if (port.deaf > leaderless) port.fail(new Lost('silent', ''));
      if (!port.attached && now - (this.#asked.get(port.id) ?? 0) > silence) this.#attach(port);
    }
    const quiet = now - this.#word;
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
    if (this.#hub || !this.#all || (!steal && (this.#candidate || !this.#browser.visible()))) return;
    this.#candidate?.abort();
    const candidate = (this.#candidate = new AbortController());
    const lead = async (): Promise<void> => {
      if (this.#candidate !== candidate) return;
      if (this.#mark) await new Promise((resolve) => setTimeout(resolve, drain));
      if (this.#candidate !== candidate || this.#hub) return;
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
    for (const port of this.#ports.values()) port.detach();
    const base = this.#mark;
    this.#leader = id;
    const over = (this.#over = new AbortController());
    this.#hub = new Hub({
      ...this.#hubOptions,
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
        for (const port of [...this.#ports.values()]) port.fail(new Refused(401, message, undefined));
        this.#resign();
      },
    });
    for (const port of this.#ports.values()) this.#attach(port);
  }

  #resign(): void {
    const hub = this.#hub;
    if (!hub) return;
    hub.close();
    this.#over.abort();
    this.#hub = undefined;
    this.#leader = undefined;
    this.#word = performance.now();
    for (const port of this.#ports.values()) port.detach();
    this.#abdicate();
  }

  #attach(port: Port): void {
    this.#asked.set(port.id, performance.now());
    this.#ask({ kind: 'attach', tab: this.#tab, port: port.id, turn: port.turn, paths: port.paths, position: port.position, visible: this.#browser.visible(), doubted: port.doubted });
  }

  #ask(asked: Asked): void {
    if (this.#hub) this.#hub.hear(asked);
    else this.#post(asked);
  }

  #hear(said: Asked | Told): void {
    if ('leader' in said) {
      if (!this.#hub) this.#follow(said);
      else if (said.kind === 'lead') {
        this.#resign(); // robbed, and not told so yet
        this.#follow(said);
      }
    } else if (this.#hub) {
      const seen = said.kind === 'visible' || (said.kind === 'attach' && said.visible);
      if (seen && !this.#browser.visible()) {
        this.#resign();
        return;
      }
      if (said.kind === 'visible') this.#hub.wake();
      this.#hub.hear(said);
    }
  }

  #follow(told: Told): void {
    if (told.kind === 'lead' || this.#leader === undefined) {
      if (told.kind === 'resign') return;
      if (this.#leader !== told.leader) for (const port of this.#ports.values()) port.detach();
      this.#leader = told.leader;
      // Those who have heard less than the new leader has, or more, cannot go on from where they are.
      if (told.kind === 'lead') this.#mark = told.base && { ...told.base, leader: told.leader };
      if (!this.#hub) for (const port of this.#ports.values()) if (!port.attached) this.#attach(port);
    }
    if (told.leader !== this.#leader) return;
    this.#word = performance.now();
    this.#pinged = undefined;
    switch (told.kind) {
      case 'frames':
        this.#tellPorts(told.mark, told.frames);
        this.#found();
        break;
      case 'lost':
        this.#lose(new Lost(told.reason, told.message));
        break;
      case 'hidden':
        if (this.#browser.visible() && !this.#hub) this.#ask({ kind: 'visible' });
        break;
      case 'resign':
        this.#leader = undefined;
        for (const port of this.#ports.values()) port.detach();
    }
  }

  #tellPorts(mark: Mark, frames: Parameters<Port['tell']>[1]): void {
    const last = this.#mark;
    this.#mark = mark;
    const missed = last?.leader === mark.leader && last.seq + frames.length !== mark.seq;
    for (const port of [...this.#ports.values()]) {
      if (missed && !this.#hub) {
        port.detach();
        this.#attach(port);
      } else port.tell(mark, frames);
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
    for (const port of [...this.#ports.values()]) port.fail(error);
  }

  #answer(answer: Answered): void {
    const port = this.#ports.get(answer.port);
    if (!port || (this.#leader !== undefined && answer.leader !== this.#leader)) return;
    this.#leader = answer.leader;
    if (answer.kind === 'go' && this.#mark?.leader !== answer.leader) this.#mark = answer.mark;
    port.answer(answer);
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

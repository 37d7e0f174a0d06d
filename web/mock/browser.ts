// A browser's tabs, locks and channels in one process and in virtual time. A tab can be frozen and killed: none of its code runs then.

import { AsyncLocalStorage } from 'node:async_hooks';
import type { Channel, Surroundings, TabLocks } from '../sdk/src/tabs/index.ts';

const running = new AsyncLocalStorage<MockTab>();

export class MockBrowser {
  readonly tabs = new Set<MockTab>();
  readonly channels = new Set<MockChannel>();
  /** Who holds a lock, and who waits for it. */
  readonly locks = new Map<string, MockLock[]>();
  /** How long a message takes, in milliseconds. */
  delay: () => number = () => 1;

  /** Timers belong to the tab that made them. To be called once the clock is a fake, which is told who it belongs to. */
  static ownTimers(): void {
    const { setTimeout, setInterval } = globalThis;
    const own = (make: typeof setTimeout | typeof setInterval) =>
      ((what: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
        const tab = running.getStore();
        const timer = make(() => (tab ? tab.run(() => what(...args)) : what(...args)), ms);
        if (make === setInterval) tab?.intervals.add(timer);
        return timer;
      }) as typeof setTimeout;
    globalThis.setTimeout = own(setTimeout);
    globalThis.setInterval = own(setInterval);
  }

  open(): MockTab {
    const tab = new MockTab(this);
    this.tabs.add(tab);
    return tab;
  }

  /** Lets the next ones have their locks. */
  grant(name: string): void {
    const queue = this.locks.get(name) ?? [];
    const [first] = queue;
    if (!first) this.locks.delete(name);
    if (!first || first.held) return;
    first.held = true;
    const over = (how: () => void): void => {
      const at = queue.indexOf(first);
      if (at === -1) return; // it was stolen
      queue.splice(at, 1);
      how();
      this.grant(name);
    };
    first.tab.run(() => {
      // A callback that fails is as good as over.
      first.callback().then(() => over(first.resolve), (error: unknown) => over(() => first.reject(error)));
    });
  }
}

interface MockLock {
  readonly tab: MockTab;
  readonly callback: () => Promise<void>;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  held: boolean;
}

class MockChannel implements Channel {
  onmessage: ((event: never) => void) | null = null;
  readonly #name: string;
  readonly #tab: MockTab;
  readonly #browser: MockBrowser;

  constructor(name: string, tab: MockTab, browser: MockBrowser) {
    this.#name = name;
    this.#tab = tab;
    this.#browser = browser;
    browser.channels.add(this);
  }

  get tab(): MockTab {
    return this.#tab;
  }

  postMessage(message: unknown): void {
    const data: unknown = structuredClone(message);
    for (const other of this.#browser.channels) {
      if (other === this || other.#name !== this.#name) continue;
      other.#tab.receive(() => {
        if (this.#browser.channels.has(other)) (other.onmessage as ((event: { data: unknown }) => void) | null)?.({ data });
      });
    }
  }

  close(): void {
    this.#browser.channels.delete(this);
  }
}

export class MockTab implements Surroundings {
  readonly #browser: MockBrowser;
  readonly #listeners = new Set<(what: 'look' | 'stop' | 'go') => void>();
  #queue: (() => void)[] | undefined;
  #dead = false;
  #hidden = false;
  #woken = -Infinity;
  #free = 0;
  readonly #gone = new AbortController();
  /** They end with the tab. */
  readonly intervals = new Set<ReturnType<typeof setInterval>>();

  constructor(browser: MockBrowser) {
    this.#browser = browser;
  }

  /** Is aborted when the tab is killed. */
  get gone(): AbortSignal {
    return this.#gone.signal;
  }

  readonly locks: TabLocks = {
    request: (name, { signal, steal }, callback) =>
      new Promise<void>((resolve, reject) => {
        if (this.#dead) return;
        const queue = this.#browser.locks.get(name) ?? [];
        this.#browser.locks.set(name, queue);
        const over = new AbortController();
        const end = (how: () => void): void => {
          over.abort();
          this.run(how);
        };
        const lock: MockLock = { tab: this, callback, resolve: () => end(resolve), reject: (error) => end(() => reject(error instanceof Error ? error : new Error('failed'))), held: false };
        const giveUp = (): void => {
          if (lock.held || !queue.includes(lock)) return;
          queue.splice(queue.indexOf(lock), 1);
          reject(new DOMException('aborted', 'AbortError'));
          this.#browser.grant(name);
        };
        signal?.addEventListener('abort', giveUp, { signal: over.signal });
        if (steal) {
          const [held] = queue[0]?.held ? queue.splice(0, 1) : [];
          queue.unshift(lock);
          held?.reject(new DOMException('stolen', 'AbortError'));
        } else queue.push(lock);
        setTimeout(() => this.#browser.grant(name), 1);
      }),
  };

  readonly channel = (name: string): Channel => new MockChannel(name, this, this.#browser);

  readonly visible = (): boolean => !this.#hidden;

  readonly attend = (listener: (what: 'look' | 'stop' | 'go') => void): (() => void) => {
    this.#listeners.add(listener);
    return () => this.#listeners.delete(listener);
  };

  get frozen(): boolean {
    return this.#queue !== undefined;
  }

  /** When it last began to run again. */
  get woken(): number {
    return this.#woken;
  }

  get dead(): boolean {
    return this.#dead;
  }

  /** Runs something of this tab, now or once it is frozen no more. */
  readonly run = (what: () => void): void => {
    if (this.#dead) return;
    if (this.#queue) this.#queue.push(what);
    else running.run(this, what);
  };

  /** A message, in order. */
  receive(what: () => void): void {
    const now = performance.now();
    this.#free = Math.max(this.#free, now + this.#browser.delay());
    running.exit(() => setTimeout(() => this.run(what), this.#free - now));
  }

  tell(what: 'look' | 'stop' | 'go'): void {
    this.run(() => {
      for (const listener of [...this.#listeners]) listener(what);
    });
  }

  hide(hidden: boolean): void {
    this.#hidden = hidden;
    this.tell('look');
  }

  /** @param told the page is told before, as browsers mostly do */
  freeze(told: boolean): void {
    if (told) this.tell('stop');
    this.#queue ??= [];
  }

  thaw(told: boolean): void {
    const queue = this.#queue ?? [];
    this.#queue = undefined;
    this.#woken = performance.now();
    for (const what of queue) this.run(what);
    if (told) this.tell('go');
  }

  /** As when its process is killed. */
  kill(): void {
    this.#dead = true;
    this.#queue = undefined;
    this.#gone.abort(); // its connections are closed
    for (const interval of this.intervals) clearInterval(interval);
    this.#browser.tabs.delete(this);
    for (const channel of [...this.#browser.channels]) if (channel.tab === this) channel.close();
    for (const [name, queue] of [...this.#browser.locks]) {
      queue.splice(0, queue.length, ...queue.filter(({ tab }) => tab !== this));
      this.#browser.grant(name);
    }
  }
}

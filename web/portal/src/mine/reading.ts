// The user's jobs, as the history has them: read anew when one of them has changed.

import { AskedError, pastJobs, type Kubecast, type PastJob } from '@kubecast/sdk';
import { jobs } from '../job/resources.ts';

export interface MyJobs {
  readonly running: readonly PastJob[];
  readonly waiting: readonly PastJob[];
  /** In the last week, the latest first. */
  readonly ended: readonly PastJob[];
  /** There are more than these. */
  readonly more: boolean;
}

export interface Read {
  /** What was read last; undefined: nothing yet. */
  readonly jobs: MyJobs | undefined;
  /** When that was, in milliseconds since the epoch. */
  readonly at: number;
  /** Why it could not be read just now. */
  readonly error: Error | undefined;
}

const running = ['Running', 'Retrying'];
const waiting = ['Submitted', 'Suspended', 'Pending'];
const ended = ['Succeeded', 'Failed', 'Deleted'];

/** In milliseconds. */
const leastGap = 1_000;
const again = 5_000;
/** Why a job waits is no change of its state. */
const whileWaiting = 15_000;

const readings = new WeakMap<Kubecast, Reading>();

/** Always the same one: who comes back to the page sees what they saw, until it is read anew. */
export function readingOf(kc: Kubecast): Reading {
  const reading = readings.get(kc) ?? new Reading(kc);
  readings.set(kc, reading);
  return reading;
}

/** Reads while somebody has subscribed; one request at a time, however often it is asked to. */
export class Reading {
  readonly #kc: Kubecast;
  readonly #listeners = new Set<() => void>();
  #read: Read = { jobs: undefined, at: 0, error: undefined };
  #dirty = false;
  #asking = false;
  #notBefore = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(kc: Kubecast) {
    this.#kc = kc;
  }

  readonly getSnapshot = (): Read => this.#read;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    this.ask();
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) clearTimeout(this.#timer);
    };
  };

  /** Something has changed. */
  readonly ask = (): void => {
    this.#dirty = true;
    this.#plan();
  };

  #plan(): void {
    clearTimeout(this.#timer);
    if (this.#asking || this.#listeners.size === 0) return;
    const wait = this.#dirty ? Math.max(0, this.#notBefore - performance.now()) : this.#idle();
    if (wait !== undefined) this.#timer = setTimeout(() => void this.#go(), wait);
  }

  /** How long until it is read although nothing has changed. */
  #idle(): number | undefined {
    const { jobs: known, error } = this.#read;
    if (error) return error instanceof AskedError && error.status < 500 && error.status !== 429 ? undefined : again;
    return known?.waiting.length ? whileWaiting : undefined;
  }

  async #go(): Promise<void> {
    this.#asking = true;
    this.#dirty = false;
    const at = Date.now();
    this.#read = await this.#ask().then(
      (found): Read => ({ jobs: found, at, error: undefined }),
      (error: unknown): Read => ({ ...this.#read, error: error instanceof Error ? error : new Error(String(error)) }),
    );
    this.#asking = false;
    this.#notBefore = performance.now() + leastGap;
    for (const listener of [...this.#listeners]) listener();
    this.#plan();
  }

  async #ask(): Promise<MyJobs> {
    const mine = (states: readonly string[], limit: number, since?: string) => pastJobs(this.#kc, jobs, { owner: 'me', states, limit, since });
    const [open, over] = await Promise.all([mine([...running, ...waiting], 500), mine(ended, 100, '168h')]);
    const of = (states: readonly string[]): PastJob[] => open.items.filter(({ state }) => states.includes(state));
    return { running: of(running), waiting: of(waiting), ended: [...over.items].sort((a, b) => b.since - a.since), more: open.more || over.more };
  }
}

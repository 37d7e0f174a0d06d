// What goes wrong with the mock when a test says so. Each fault that lasts returns what ends it.

import type { MockResponse } from './memory.ts';
import type { MockGateway } from './gateway.ts';

/** Ends a fault. */
export type Heal = () => void;

export class MockFaults {
  readonly #gateway: MockGateway;
  readonly #lasting = new Set<Heal>();
  /** By how many milliseconds what is answered is late. */
  #late = { by: 0 };
  #stale: { readonly since: string; readonly reason: string } | undefined;
  /** What every request is refused with. */
  #refused: { readonly reason: 'drain' | 'limit'; readonly status: number; readonly detail: string; readonly retryAfter: number } | undefined;

  constructor(gateway: MockGateway) {
    this.#gateway = gateway;
  }

  /** Every stream breaks, as when a proxy is restarted. @param within each does so in the middle of the next frame */
  cut({ within = false } = {}): void {
    for (const stream of this.#gateway.streams) {
      if (within) stream.cutWithinNext();
      else stream.cut();
    }
    for (const watch of this.#gateway.watches) watch.cut();
  }

  /** Nothing arrives any more, and nobody is told: streams are dead, and look quiet. New ones are well. */
  silence(): void {
    for (const stream of this.#gateway.streams) stream.stop();
  }

  /** The cluster is away: what is shown is as it was, and streams say so. At the end they are told what happened meanwhile, and then `live`. */
  stale(reason: 'unreachable' | 'refused' | 'starting' = 'unreachable'): Heal {
    const stale = { since: new Date().toISOString(), reason };
    const release = this.#gateway.cluster.hold();
    this.#stale = stale;
    for (const stream of this.#gateway.streams) stream.freshness('stale', stale);
    return this.#lasts(() => {
      release();
      if (this.#stale !== stale) return; // it is so for another reason by now
      this.#stale = undefined;
      for (const stream of this.#gateway.streams) stream.freshness('live', { since: new Date().toISOString(), reason: 'live' });
    });
  }

  /** All that is answered or told is so many milliseconds late. */
  slow(milliseconds: number): Heal {
    const late = { by: milliseconds };
    this.#late = late;
    return this.#lasts(() => {
      if (this.#late === late) this.#late = { by: 0 };
    });
  }

  /** Nobody is let in with a token any more, and its streams end at once. @param token undefined: each */
  revoke(token?: string): Heal {
    const revoked = [...this.#gateway.users].filter(([one]) => token === undefined || one === token);
    for (const [one] of revoked) this.#gateway.permit(one, undefined);
    return this.#lasts(() => {
      for (const [one, user] of revoked) this.#gateway.users.set(one, user);
    });
  }

  /** What anybody has is too old: streams break, their positions are `reset`, and tokens of pages are 410. */
  expire(): void {
    const { cluster, past, inbox } = this.#gateway;
    cluster.skip(); // or who has all of it has the newest
    cluster.compact();
    for (const log of [past, past?.lives, inbox]) log?.expire();
    this.#gateway.cutAll();
  }

  /** It is about to end, as in a rollout: streams end with `drain`, also those that begin; other requests are 503. */
  drain(): Heal {
    for (const stream of this.#gateway.streams) stream.goodbye('drain', undefined, Math.max(1, this.#gateway.retry));
    return this.#refuses({ reason: 'drain', status: 503, detail: 'the gateway ends', retryAfter: 1 });
  }

  /** Whoever asks has asked for too much: 429, and streams that begin end with `limit`. */
  tooMany(retryAfter = 1): Heal {
    return this.#refuses({ reason: 'limit', status: 429, detail: 'too many requests', retryAfter });
  }

  /** Ends all that lasts. */
  heal(): void {
    for (const heal of [...this.#lasting]) heal();
  }

  /** @internal since when the cluster is away */
  get staleSince(): { readonly since: string; readonly reason: string } | undefined {
    return this.#stale;
  }

  /** @internal what requests are refused with */
  get refused(): { readonly reason: 'drain' | 'limit'; readonly status: number; readonly detail: string; readonly retryAfter: number } | undefined {
    return this.#refused;
  }

  /** @internal An answer that is as late as is said by then; in order, also when that changes. */
  delayed(response: MockResponse): MockResponse {
    let due = 0;
    const later = (what: () => void): void => {
      const now = performance.now();
      due = Math.max(due, now + this.#late.by);
      if (due <= now) what();
      else setTimeout(what, due - now);
    };
    const late: MockResponse = {
      get socket() {
        return response.socket;
      },
      writeHead: (status, headers) => {
        later(() => response.writeHead(status, headers));
        return late;
      },
      write: (text, written) => later(() => response.write(text, written)),
      end: (text) => later(() => response.end(text)),
      on: (event, listener) => response.on(event, listener),
    };
    return late;
  }

  #refuses(refused: NonNullable<MockFaults['refused']>): Heal {
    this.#refused = refused;
    return this.#lasts(() => {
      if (this.#refused === refused) this.#refused = undefined;
    });
  }

  #lasts(end: Heal): Heal {
    const heal = (): void => {
      if (this.#lasting.delete(heal)) end();
    };
    this.#lasting.add(heal);
    return heal;
  }
}

// What the gateway says of a watch beside what is watched: that it is old, and what restricts it.

import type { Snapshot } from './collection.ts';
import type { StreamEvent } from './events.ts';
import { isSame } from './state.ts';

export class Circumstances {
  #stale: Snapshot<never>['stale'];
  #namespaces: Snapshot<never>['namespaces'];
  // The connection goes on from a position, and what was missed is not all told: behind that comes a bookmark (wire.md, rule 6).
  #behind = false;
  // The connection has said something of this watch. What restricts it, and that it is old, is told first if it is so.
  #begun = false;

  /** A connection begins; `resumed`: from a position, `behind`: which is not of just now. */
  opened(resumed: boolean, behind: boolean): void {
    this.#begun = false;
    this.#behind = behind;
    if (!resumed) this.#namespaces = undefined;
  }

  /** Returns whether the event has changed anything here. */
  apply(event: StreamEvent): boolean {
    const { type } = event;
    const before = this.of(false, true);
    if (!this.#begun && type !== 'reset') {
      this.#begun = true;
      this.#stale = this.#namespaces = undefined;
    }
    if (/bookmark|synced/.test(type)) this.#behind = false;
    if (type === 'stale') this.#stale = { since: event.since, reason: event.reason };
    if (type === 'live') this.#stale = undefined;
    if ('namespaces' in event) {
      this.#namespaces = event.namespaces && [...new Set([...event.namespaces, ...Object.keys(event.names)])].filter(Boolean);
    }
    return !isSame(this.of(false, true), before);
  }

  /** What a snapshot says beside its items. `awaited`: all of them are, `complete`: they once were there. */
  of(awaited: boolean, complete: boolean): Omit<Snapshot<never>, 'items'> {
    const phase = awaited && !complete ? 'loading' : awaited || this.#behind ? 'refreshing' : 'current';
    return { phase, stale: this.#stale, namespaces: this.#namespaces };
  }
}

// What the gateway says of a watch beside what is watched: that it is old, and what restricts it.

import type { StreamEvent } from './events.ts';

export class Circumstances {
  /** Set while the gateway's own watch is lost; `since` in milliseconds since the epoch. */
  stale: { readonly since: number; readonly reason: string } | undefined;
  /** See {@link Snapshot.namespaces}. */
  namespaces: readonly string[] | undefined;
  // The connection has said something of this watch. What restricts it, and that it is old, is told first if it is so.
  #begun = false;

  /** A connection begins; `resumed`: from a position. */
  opened(resumed: boolean): void {
    this.#begun = false;
    if (!resumed) this.namespaces = undefined;
  }

  /** Returns whether the event has changed anything here. */
  apply(event: StreamEvent): boolean {
    const { type } = event;
    const { stale, namespaces } = this;
    if (!this.#begun && type !== 'reset') {
      this.#begun = true;
      this.stale = undefined;
      this.namespaces = undefined;
    }
    if (type === 'stale') this.stale = { since: event.since, reason: event.reason };
    if (type === 'live') this.stale = undefined;
    if (type === 'narrowed' || type === 'widened') {
      this.namespaces = event.namespaces && [...new Set([...event.namespaces, ...Object.keys(event.names)])].filter(Boolean);
    }
    return this.stale !== stale || this.namespaces !== namespaces;
  }
}

// What adapters hand to components: a snapshot, and beside it what can be done.

import type { Freshness } from './state.ts';

/** A {@link Watch}, an {@link Inbox}, an {@link Asked}. */
export interface Followable {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => object;
  readonly getServerSnapshot: () => object;
}

export type Shown<F extends Followable> = ReturnType<F['getSnapshot']> & Omit<F, keyof Followable>;

/** What to show of it now, or of another snapshot of it; a new object each time. */
export function shown<F extends Followable>(from: F, snapshot = from.getSnapshot()): Shown<F> {
  const { subscribe, getSnapshot, getServerSnapshot, ...offers } = from;
  return { ...snapshot, ...offers } as unknown as Shown<F>;
}

/** One object in place of a list; undefined while it is not known, and if there is none. */
export type One<S> = S extends { readonly data: readonly (infer T)[] } ? Omit<S, 'data'> & { readonly data: T | undefined } : never;

export function one<S extends { readonly data: readonly unknown[] }>(snapshot: S): One<S> {
  return { ...snapshot, data: snapshot.data[0] } as unknown as One<S>;
}

type Held = Omit<Freshness, 'status'> & { readonly status: Freshness['status'] | 'idle' };

/** What was shown before, while what takes its place is not there yet; what can be done is what can be done with that. */
export function held<S extends Held>(before: S, now: S): S {
  if (now.status !== 'loading' || /loading|idle|denied|failed/.test(before.status)) return now;
  const { data, total, offset, namespaces } = before as Record<string, unknown>;
  return { ...now, data, total, offset, namespaces, status: 'stale', reason: 'catching-up' };
}

/** Looks at one thing after the other, and holds what was shown of the one before. */
export function holding(): <F extends Followable & { getSnapshot: () => Held }>(from: F) => Shown<F> {
  let before: Held | undefined;
  return (from) => {
    const now: Held = shown(from);
    before = before ? held(before, now) : now;
    return before as never;
  };
}

// What adapters hand to components: a snapshot, and beside it what can be done.

/** A {@link Watch}, an {@link Inbox}. */
export interface Followable {
  readonly subscribe: (listener: () => void) => () => void;
  readonly getSnapshot: () => object;
  readonly getServerSnapshot: () => object;
}

export type Shown<F extends Followable> = ReturnType<F['getSnapshot']> & Omit<F, keyof Followable>;

/** What to show of it now; a new object each time. */
export function shown<F extends Followable>({ subscribe, getSnapshot, getServerSnapshot, ...offers }: F): Shown<F> {
  return { ...getSnapshot(), ...offers } as unknown as Shown<F>;
}

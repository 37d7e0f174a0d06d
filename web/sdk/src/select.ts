// What a component selects of what is there, and whether that has changed.

/** What of `data` a component shows. It is rendered anew only when that changes, or how far it can be trusted does. */
export interface Selecting<D, S> {
  /** Given `data`, also while that is empty or undefined. Its result takes the place of `data`; what it throws, the component throws. */
  readonly select?: ((data: D) => S) | undefined;
  /** Whether equal lists and objects of `select` are the same, as those before are kept then; by default they are. With `false`, only what is identical is no change: so for what refers to itself. */
  readonly structuralSharing?: boolean | undefined;
}

/** What is shown, with what was selected in place of `data`. */
export type Selected<S, D> = Omit<S, 'data'> & { readonly data: D };

type Shows = { readonly [key: string]: unknown };

/** A view of a snapshot that stays the same one as long as nothing of it has changed. `before` is what was shown last. */
export function selector(getSnapshot: () => object, { select = (data) => data, structuralSharing = true }: Selecting<never, unknown>, before: () => object | undefined): () => object {
  let of: object | undefined;
  let shown = before() as Shows | undefined;
  return () => {
    const snapshot = getSnapshot() as Shows;
    if (of === snapshot && shown) return shown;
    const selected = select(snapshot.data as never);
    const { jobs, more, transitions, ...rest } = snapshot; // what a history has besides is not selected
    const next: Shows = { ...rest, data: structuralSharing ? replaceEqualDeep(shown?.data, selected) : selected };
    if (!shown || !Object.keys(next).every((key) => Object.is(next[key], shown?.[key]))) shown = next;
    of = snapshot;
    return shown;
  };
}

/**
 * `now`, in which what is equal to a part of `before` is that part; if all of it is, `before` itself. Of lists and plain objects.
 *
 * ```ts
 * const names = computed((before?: readonly string[]) => replaceEqualDeep(before, running.value.data.map(({ metadata }) => metadata.name)));
 * ```
 */
export function replaceEqualDeep<T>(before: unknown, now: T): T {
  const lists = Array.isArray(before) && Array.isArray(now);
  if (Object.is(before, now) || !(lists || (isPlain(before) && isPlain(now)))) return now;
  const [old, given] = [before, now] as Shows[] as [Shows, Shows];
  const keys = Object.keys(given);
  const shared = lists
    ? (now as readonly unknown[]).map((value, n) => replaceEqualDeep(before[n], value))
    : Object.fromEntries(keys.map((key) => [key, replaceEqualDeep(old[key], given[key])]));
  const isSame = keys.length === Object.keys(old).length && keys.every((key) => Object.hasOwn(old, key) && Object.is((shared as Shows)[key], old[key]));
  return (isSame ? before : shared) as T;
}

function isPlain(value: unknown): value is Shows {
  if (typeof value !== 'object' || value === null) return false;
  const prototype: unknown = Object.getPrototypeOf(value);
  return prototype === Object.prototype || prototype === null;
}

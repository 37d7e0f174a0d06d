// What a case is, and the few words in which cases are written. No test runner is asked for: a case that fails throws.

/** One named promise of the contract, and how it is tried. */
export interface Case<Subject> {
  /** Short and stable, as for a list of known failures. */
  readonly name: string;
  /** What goes wrong for people where it does not hold. */
  readonly why: string;
  /** Which of the subject's abilities it is about, if not all have it; see {@link lacks}. */
  readonly needs?: string | undefined;
  /** Resolves if the promise holds; rejects with a {@link Failure} if not. */
  readonly run: (subject: Subject) => Promise<void>;
}

/** The subject does not do what the contract promises. Its message says what was seen. */
export class Failure extends Error {
  override readonly name = 'Failure';
}

/** What keeps a case from being tried with this subject; undefined: nothing. */
export function lacks(one: Case<never>, subject: { readonly abilities?: Iterable<string> | undefined }): string | undefined {
  return one.needs === undefined || [...(subject.abilities ?? [])].includes(one.needs) ? undefined : one.needs;
}

/** How long the subject has for whatever it owes, in milliseconds: much, since a busy machine is no broken contract. */
const patience = 20_000;

export const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export function check(holds: boolean, what: string): asserts holds {
  if (!holds) throw new Failure(what);
}

export function same(seen: unknown, wanted: unknown, what: string): void {
  const [is, ought] = [JSON.stringify(seen), JSON.stringify(wanted)];
  check(is === ought, `${what}: ${is}, and not ${ought}`);
}

/** Waits until something holds. @param describe what to say of it if it never does */
export async function until(holds: () => boolean, describe: () => string, within = patience): Promise<void> {
  const deadline = performance.now() + within;
  while (!holds()) {
    check(performance.now() < deadline, `${describe()} (waited ${within} ms)`);
    await pause(5);
  }
}

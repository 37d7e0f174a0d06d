// One room of one server, for as long as a case takes.

import { same, type Case } from '../case.ts';
import { Listener, type Told } from './listener.ts';
import type { Room, ServerAbility, ServerSubject, Thing } from './subject.ts';

export class Trial {
  readonly subject: ServerSubject;
  readonly room: Room;
  readonly #open = new Set<Listener>();
  /** What was written since the server was last seen to know all of it, by name; undefined is what was removed. */
  readonly #written = new Map<string, Thing | undefined>();

  constructor(subject: ServerSubject, room: Room) {
    this.subject = subject;
    this.room = {
      path: room.path,
      jobs: room.jobs,
      forget: async () => room.forget?.(),
      put: async (name, content) => {
        const thing = await room.put(name, content);
        this.#written.set(name, thing);
        return thing;
      },
      remove: async (name) => {
        await room.remove(name);
        this.#written.set(name, undefined);
      },
    };
  }

  /** A stream of the room, or of another path. */
  async listen(query: string | { readonly path: string } = '', from?: string): Promise<Listener> {
    const listener = await Listener.open(this.subject, typeof query === 'string' ? this.room.path + query : query.path, from);
    this.#open.add(listener);
    return listener;
  }

  /** Waits until the server has heard of what was written to the room: it may answer from a copy, which follows a little later. */
  async known(): Promise<void> {
    if (this.#written.size === 0) return;
    const listener = await this.listen();
    await listener.until(() => {
      const state = listener.state();
      return [...this.#written].every(([name, thing]) => state.has(name) === (thing !== undefined) && state.get(name)?.metadata.resourceVersion === thing?.metadata.resourceVersion);
    }, 'what was written is not told');
    this.#written.clear();
    listener.close();
  }

  /** A stream of the room, as far as its first snapshot, in which all that was written is. */
  async synced(query: string | { readonly path: string } = ''): Promise<Listener> {
    await this.known();
    const listener = await this.listen(query);
    await listener.next('synced');
    return listener;
  }

  async ask(path: string, init: RequestInit = {}): Promise<Response> {
    const headers = { ...this.subject.headers, ...(init.headers as Record<string, string> | undefined) };
    return (this.subject.fetch ?? globalThis.fetch)(this.subject.url + path, { ...init, headers });
  }

  close(): void {
    for (const listener of this.#open) listener.close();
  }
}

/** What events tell of objects, as `type name`. */
export const changesOf = (told: readonly Told[]): string[] =>
  told.filter(({ type }) => /^(added|modified|deleted)$/.test(type)).map(({ type, data }) => `${type} ${(data as { metadata: { name: string } }).metadata.name}`);

/** That a listener has, by and by, these. */
export async function comesTo(listener: Listener, wanted: Readonly<Record<string, string | undefined>>, watch = ''): Promise<void> {
  const sorted = (entries: Iterable<readonly [string, unknown]>): string => JSON.stringify([...entries].sort(([a], [b]) => (a < b ? -1 : 1)));
  const ought = sorted(Object.entries(wanted).map(([name, n]) => [name, n ?? null] as const));
  const is = (): string => sorted([...listener.state(watch)].map(([name, { data }]) => [name, data?.n ?? null] as const));
  await listener.until(() => is() === ought, `the state does not become ${ought}`).catch((error: unknown) => {
    same(is(), ought, 'the state');
    throw error;
  });
}

export function serverCase(name: string, why: string, run: (trial: Trial) => Promise<void>, needs?: ServerAbility): Case<ServerSubject> {
  return {
    name,
    why,
    needs,
    run: async (subject) => {
      const trial = new Trial(subject, await subject.room());
      try {
        await run(trial);
      } finally {
        trial.close();
      }
    },
  };
}

// One room of one server, for as long as a case takes.

import { same, type Case } from '../case.ts';
import { Listener, type Told } from './listener.ts';
import type { Room, ServerAbility, ServerSubject } from './subject.ts';

export class Trial {
  readonly subject: ServerSubject;
  readonly room: Room;
  readonly #open = new Set<Listener>();

  constructor(subject: ServerSubject, room: Room) {
    this.subject = subject;
    this.room = room;
  }

  /** A stream of the room, or of another path. */
  async listen(query: string | { readonly path: string } = '', from?: string): Promise<Listener> {
    const listener = await Listener.open(this.subject, typeof query === 'string' ? this.room.path + query : query.path, from);
    this.#open.add(listener);
    return listener;
  }

  /** A stream of the room, as far as its first snapshot. */
  async synced(query: string | { readonly path: string } = ''): Promise<Listener> {
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

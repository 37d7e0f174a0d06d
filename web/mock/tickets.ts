// Tickets, each for one question within 30 seconds, for clients that can send no header.

import type { MockRequest, MockResponse } from './memory.ts';
import { answer, refuse } from './reply.ts';

const lasts = 30_000;

export class Tickets {
  readonly #given = new Map<string, { readonly token: string; readonly question: string; readonly until: number }>();
  #count = 0;

  give(request: MockRequest, response: MockResponse, token: string): void {
    let body = '';
    const utf8 = new TextDecoder();
    request.on('data', (part) => (body += utf8.decode(part, { stream: true })));
    request.on('end', () => {
      const path = pathIn(body);
      if (path === undefined) {
        refuse(request, response, 400, 'the body is no {"path":"/path?query"}');
        return;
      }
      const ticket = `ticket-${++this.#count}`;
      const until = Date.now() + lasts;
      this.#given.set(ticket, { token, question: questionOf(new URL(path, 'http://gateway')), until });
      answer(response, 200, { ticket, expiresAt: new Date(until).toISOString() });
    });
  }

  /** The token for which a ticket stands, once. */
  take(ticket: string, url: URL): string | undefined {
    const given = this.#given.get(ticket);
    if (!given || given.until < Date.now() || given.question !== questionOf(url)) return undefined;
    this.#given.delete(ticket);
    return given.token;
  }
}

function pathIn(body: string): string | undefined {
  try {
    const { path } = JSON.parse(body) as { path?: unknown };
    return typeof path === 'string' && path.startsWith('/') ? path : undefined;
  } catch {
    return undefined;
  }
}

/** The path and the query, the position excepted. */
function questionOf({ pathname, searchParams }: URL): string {
  const rest = [...searchParams].filter(([key]) => !['ticket', 'lastEventId', 'last_event_id'].includes(key));
  return `${pathname}?${new URLSearchParams(rest).toString()}`;
}

// The notifications of the mock as they are listed, and what callers say of them; see "Notifications" in the wire contract.

import type { MockResponse } from './memory.ts';
import { pageOf } from './past.ts';
import { BadQuery, durationOf } from './query.ts';
import { answer } from './reply.ts';
import type { MockInbox } from './told.ts';

const states = ['Submitted', 'Queued', 'Suspended', 'Pending', 'Running', 'Retrying', 'Succeeded', 'Failed', 'Cancelled', 'Deleted'];

export function inboxPage(inbox: MockInbox, query: URLSearchParams): object {
  const unknown = [...query.keys()].find((key) => !['unread', 'limit', 'continue', 'ticket'].includes(key));
  if (unknown) throw new BadQuery(`${unknown}: unknown parameter of notifications`);
  const unread = query.get('unread') ?? 'false';
  if (!['true', 'false'].includes(unread)) throw new BadQuery(`unread: ${JSON.stringify(unread)} is neither true nor false`);
  const page = pageOf(inbox.all(unread === 'true'), query, 'notifications', ({ id }) => id);
  return { items: page.items, unread: inbox.unread, continue: page.continue };
}

export const settingsOf = (inbox: MockInbox): unknown => inbox.settings;

/** What was read, or is to be told from now on. */
export function changeInbox(inbox: MockInbox, path: string, said: unknown, response: MockResponse): void {
  if (inbox.refuseWith) {
    answer(response, inbox.refuseWith, { detail: 'refused by the test' });
  } else if (path.endsWith('/settings')) {
    inbox.settings = checkedSettings(said as Record<string, unknown>);
    answer(response, 200, inbox.settings);
  } else {
    inbox.read(checkedMarks(said as Record<string, unknown>));
    response.writeHead(204, {}).end();
  }
}

function checkedSettings(said: Readonly<Record<string, unknown>>): object {
  const unknown = Object.keys(said).find((key) => !['states', 'digest', 'pausedUntil'].includes(key));
  if (unknown) throw new BadQuery(`${unknown}: unknown`);
  const { states: of = ['Succeeded', 'Failed', 'Retrying'], digest = '0s', pausedUntil = null } = said;
  if (!Array.isArray(of) || !of.every((state) => states.includes(String(state)))) throw new BadQuery('states: there is no such state');
  if (typeof digest !== 'string' || (durationOf('digest', digest) ?? 0) > 86_400_000) throw new BadQuery('digest: it is no duration up to 24h');
  if (pausedUntil !== null && (typeof pausedUntil !== 'string' || Number.isNaN(Date.parse(pausedUntil)))) throw new BadQuery('pausedUntil: it is no time');
  return { states: of, digest, pausedUntil };
}

function checkedMarks(said: Readonly<Record<string, unknown>>): { upTo: string } | { ids: readonly string[] } {
  const { upTo, ids } = said;
  if (Object.keys(said).length !== 1) throw new BadQuery('exactly one of upTo and ids is needed');
  if (typeof upTo === 'string' && /^\d+$/.test(upTo)) return { upTo };
  if (Array.isArray(ids) && ids.length <= 500 && ids.every((id) => typeof id === 'string' && /^\d+$/.test(id))) return { ids: ids as string[] };
  throw new BadQuery('upTo is an id, and ids are up to 500 of them');
}

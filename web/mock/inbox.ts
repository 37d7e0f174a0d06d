// The notifications of the mock as they are listed, and what callers say of them; see "Notifications" in the wire contract.

import type { MockResponse } from './memory.ts';
import { pageOf } from './past.ts';
import { BadQuery, durationOf, whole } from './query.ts';
import { answer } from './reply.ts';
import { maySee, type MockUser } from './rights.ts';
import type { ToldWatch } from './stream.ts';
import type { InboxView, MockInbox, Told } from './told.ts';

const states = ['Submitted', 'Queued', 'Suspended', 'Pending', 'Running', 'Retrying', 'Succeeded', 'Failed', 'Cancelled', 'Deleted'];

/** What a user may see: of a digest, what is of such jobs. It is asked anew each time, since permissions change. */
export const viewOf = (user: () => MockUser): InboxView => (item) => {
  const { namespaces, kinds } = user();
  if (!namespaces && !kinds) return item;
  const sees = (of: unknown): boolean => maySee({ namespaces, kinds }, String((of as JobOf).resource), String((of as JobOf).namespace));
  if (item.transition) return sees(item.transition) ? item : undefined;
  const digest = (item.digest as readonly unknown[]).filter(sees);
  return digest.length > 0 ? { ...item, digest } : undefined;
};

interface JobOf {
  readonly resource?: string;
  readonly namespace?: string;
}

/** What a stream tells of them. */
export function inboxWatch(inbox: MockInbox, query: URLSearchParams, view: InboxView): ToldWatch {
  const unknown = [...query.keys()].find((key) => !['limit', 'heartbeat', 'lastEventId', 'last_event_id'].includes(key));
  if (unknown) throw new BadQuery(`${unknown}: unknown parameter of a stream of notifications`);
  const limit = whole('limit', query.get('limit') ?? '100', 0, 1_000);
  const unread = (): number => inbox.all(true, view).length;
  return {
    ...{ log: inbox, limit, mark: 'n-' },
    matches: ({ type, data }) => type === 'read' || view(data as Told) !== undefined,
    shape: (data) => ('title' in data ? (view(data as Told) ?? data) : { ...data, unread: unread() }),
    first: () => inbox.all(false, view).slice(0, limit).reverse().map((data) => ({ type: 'notification', data })),
    synced: ({ length: count }) => ({ seq: String(inbox.seq), count, unread: unread() }),
  };
}

export function inboxPage(inbox: MockInbox, query: URLSearchParams, view: InboxView): object {
  const unknown = [...query.keys()].find((key) => !['unread', 'limit', 'continue', 'ticket'].includes(key));
  if (unknown) throw new BadQuery(`${unknown}: unknown parameter of notifications`);
  const unread = query.get('unread') ?? 'false';
  if (!['true', 'false'].includes(unread)) throw new BadQuery(`unread: ${JSON.stringify(unread)} is neither true nor false`);
  const page = pageOf(inbox.all(unread === 'true', view), query, 'notifications', ({ id }) => id);
  return { items: page.items, unread: inbox.all(true, view).length, continue: page.continue };
}

export const settingsOf = (inbox: MockInbox): unknown => inbox.settings;

/** What was read, or is to be told from now on. */
export function changeInbox(inbox: MockInbox, path: string, said: unknown, response: MockResponse, view: InboxView): void {
  if (inbox.refuseWith) {
    answer(response, inbox.refuseWith, { detail: 'refused by the test' });
  } else if (path.endsWith('/settings')) {
    inbox.settings = checkedSettings(said as Record<string, unknown>);
    answer(response, 200, inbox.settings);
  } else {
    inbox.read(checkedMarks(said as Record<string, unknown>), view);
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

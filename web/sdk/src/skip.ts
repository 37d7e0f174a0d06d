// What hooks show that are told to ask for nothing, for now.

import type { Asked } from './asked.ts';
import { none } from './collection.ts';
import type { Watch } from './kubecast.ts';
import { notGrowing } from './infinite.ts';
import type { InfiniteList } from './infinitelist.ts';
import type { Inbox } from './notifications.ts';
import type { Past } from './past.ts';
import type { Queues } from './queues.ts';
import type { Followable } from './shown.ts';

/** In place of what is asked for: nothing is, and the status is `idle`. Where a hook cannot do without a question, undefined means the same. */
export type Skip = 'skip' | undefined;

/** What a hook shows that may be told to ask for nothing: its status may be `idle`. */
export type Skippable<S> = S extends { readonly status: infer Status } ? Omit<S, 'status'> & { readonly status: Status | 'idle' } : never;

export const isSkip = (query: unknown): query is Skip => query === undefined || query === 'skip';

const stay = (): void => undefined;

/** Nothing to follow: it never changes, and is the same one for all. */
function idle(snapshot: object, offers?: object): Followable {
  const getSnapshot = (): object => snapshot;
  return { subscribe: () => stay, getSnapshot, getServerSnapshot: getSnapshot, retry: stay, ...offers } as Followable;
}

const now = { status: 'idle', reason: undefined, asOf: undefined, error: undefined };

export const idleWatch = /* @__PURE__ */ idle({ data: none, namespaces: undefined, ...now }) as Watch<never, never> & Queues;
export const idleAsked = /* @__PURE__ */ idle({ data: undefined, status: 'idle', reason: undefined, error: undefined }) as Asked<never>;
export const idlePast = /* @__PURE__ */ idle({ data: none, jobs: none, more: false, transitions: none, ...notGrowing, ...now }, { fetchNextPage: stay }) as Past;
export const idleList = /* @__PURE__ */ idle({ data: none, namespaces: undefined, ...notGrowing, ...now }, { fetchNextPage: stay }) as InfiniteList<never>;
export const idleInbox = /* @__PURE__ */ idle({ items: none, unread: 0, ...now }) as Followable & Pick<Inbox, 'retry'>;

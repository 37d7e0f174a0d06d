// What is on screen, kept in the address's fragment so that it survives a reload and can be shared:
// `#pods?ns=team-a&q=train&state=Running&sort=-age`, or `#jobs/team-a/train?tab=yaml` for one job. Without one it is the user's own page, `#mine`.
// `#jobs/team-a/train@UID` is that run of the name, for ever, whatever has the name now; with `?tab=compare&compare=UID` beside another one.
// `#pods/team-a/train-0?line=train-0/main/2026-01-31T09:00:00.123Z` is a line of its log, `?log=side` its containers side by side.
// `#queues/team-a/gpu` is a queue, `#queues/all` one of the whole cluster.
// `#kinds/deployments.apps` is the table of a kind, `#kinds/deployments.apps/team-a/web` one of its objects, `#kinds/nodes/node-1` one of no namespace.
// `#overview?tab=wall` is the overview for a screen on a wall.
// `#jobs/team-a/train?cluster=west` is a job of another cluster than the default one, `#mine?only=cluster` what the user has in one alone.
// `#jobs?cols=state+age` shows these columns beside the name.
// Fragments never reach a server's log.

import { useSyncExternalStore } from 'react';

export const pageNames = ['mine', 'overview', 'jobs', 'pods', 'queues', 'history', 'kinds'] as const;
export type PageName = (typeof pageNames)[number];

/** What a page's table is narrowed to; each of these is a step that Back undoes. */
export interface Filters {
  /** Of several that the gateway serves; empty: the default one. */
  readonly cluster: string;
  /** `cluster`: a page that shows all clusters shows this one alone. */
  readonly only: string;
  /** Empty: all that the user may see. */
  readonly namespace: string;
  readonly search: string;
  /** Empty: every state. */
  readonly state: string;
  /** Empty: everybody's; `me`: the user's own. */
  readonly owner: string;
  /** Empty: all queues. */
  readonly queue: string;
  /** Why jobs ended, as `OOMKilled`; empty: for whatever reason. */
  readonly cause: string;
  /** How far back, such as `24h`; empty: as far as the page looks by itself. */
  readonly since: string;
}

export interface View extends Filters {
  readonly page: PageName;
  /** The address leads nowhere. */
  readonly unknown?: true;
  /** On the page of kinds: which, such as `deployments.apps`; empty: they are there to choose from. */
  readonly kind: string;
  /** The one object that is shown, in place of the table. The namespace is empty for what has none. */
  readonly object: { readonly namespace: string; readonly name: string; /** Which of those that ever had the name; undefined: the one that has it, or had it last. */ readonly uid?: string } | undefined;
  /** What is shown of the object; empty: what comes first. */
  readonly tab: string;
  /** The uid of the run with which a run is compared; empty: the one before. */
  readonly compare: string;
  /** The line of the object's log that is meant, as `POD/CONTAINER/TIME`; empty: none. */
  readonly line: string;
  /** How several containers' logs are shown: `side` by side; empty: merged. */
  readonly log: string;
  readonly sort: { readonly column: string; readonly descending: boolean };
  /** The columns of the table beside the first, with spaces between; empty: those that it has by itself. */
  readonly columns: string;
}

const defaultSort = 'age';

/** The filters, by the names that they have in the address. */
const parameters = { cluster: 'cluster', only: 'only', namespace: 'ns', search: 'q', state: 'state', owner: 'owner', queue: 'queue', cause: 'cause', since: 'since' } as const satisfies Record<keyof Filters, string>;
const filterNames = Object.keys(parameters) as (keyof Filters)[];

export function parseView(hash: string): View {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const [plain = '', uid = ''] = path.startsWith('jobs/') ? path.split('@', 2) : [path];
  const [first, ...parts] = plain.split('/').map(decoded);
  const params = new URLSearchParams(query);
  const sort = params.get('sort') ?? defaultSort;
  const known = pageNames.find((one) => one === first);
  const page = known ?? 'mine';
  const kind = page === 'kinds' ? (parts.shift() ?? '') : '';
  // A job that has succeeded was called so.
  if ((page === 'jobs' || page === 'history') && params.get('state') === 'Complete') params.set('state', 'Succeeded');
  // No cluster has such a name, and a browser would take it out of the path of what is asked.
  if (/^\.\.?$/.test(params.get('cluster') ?? '')) params.delete('cluster');
  const filters = Object.fromEntries(filterNames.map((name) => [name, params.get(parameters[name]) ?? ''])) as unknown as Filters;
  return {
    page,
    ...(!known && path !== '' && { unknown: true as const }),
    kind,
    object: objectAt(page, kind, parts, decoded(uid)),
    tab: params.get('tab') ?? '',
    compare: params.get('compare') ?? '',
    line: params.get('line') ?? '',
    log: params.get('log') ?? '',
    ...filters,
    sort: { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') },
    columns: params.get('cols') ?? '',
  };
}

function objectAt(page: PageName, kind: string, parts: readonly string[], uid: string): View['object'] {
  const [namespace, name] = parts;
  if ((kind !== '' || page === 'queues') && namespace && parts.length === 1) return { namespace: '', name: namespace };
  return (page === 'jobs' || page === 'pods' || page === 'queues' || kind !== '') && namespace && name ? { namespace, name, ...(uid ? { uid } : {}) } : undefined;
}

function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text; // written by hand
  }
}

export function formatView(view: View): string {
  const params = new URLSearchParams();
  for (const name of filterNames) if (view[name]) params.set(parameters[name], view[name]);
  const sort = (view.sort.descending ? '-' : '') + view.sort.column;
  if (sort !== defaultSort) params.set('sort', sort);
  if (view.columns) params.set('cols', view.columns);
  if ((view.object || view.page === 'overview') && view.tab) params.set('tab', view.tab);
  if (view.object) for (const name of ['compare', 'line', 'log'] as const) if (view[name]) params.set(name, view[name]);
  const query = params.toString();
  const parts = [view.kind, view.object?.namespace ?? '', view.object?.name ?? ''].filter((part) => part !== '');
  const uid = view.object?.uid ? `@${encodeURIComponent(view.object.uid)}` : '';
  return `#${view.page}${parts.map((part) => `/${encodeURIComponent(part)}`).join('')}${uid}${query ? `?${query}` : ''}`;
}

/** Another page, of the same cluster. */
export const viewAt = (hash: string, { cluster }: Pick<View, 'cluster'>): View => ({ ...parseView(hash), cluster });

/** What a page shows of an object before anybody has chosen. */
const nothing = { tab: '', compare: '', line: '', log: '' } as const;

/** Kinds that have a page of their own, by the group-qualified plural. */
const pageOf = (kind: string): Pick<View, 'page' | 'kind'> => (kind === 'jobs.batch' ? { page: 'jobs', kind: '' } : kind === 'pods' ? { page: 'pods', kind: '' } : { page: 'kinds', kind });

/** One object's page, of whatever kind. What the kind's table shows is kept, for whoever goes back. */
export function linkToObject(kind: string, namespace: string, name: string, view: View): string {
  const to = pageOf(kind);
  const table = view.page === to.page && view.kind === to.kind ? view : { ...viewAt('', view), namespace: view.namespace };
  return formatView({ ...table, ...to, object: { namespace, name }, ...nothing });
}

export const linkToJob = (namespace: string, name: string, view: View): string => linkToObject('jobs.batch', namespace, name, view);

/** The page of one run of a job's name, also when it is gone, or another one has the name. */
export const linkToRun = ({ namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string }, view: View): string =>
  formatView({ ...parseView(linkToJob(namespace, name, view)), object: { namespace, name, uid } });

/** A queue's page; without a namespace that of a queue of the whole cluster. */
export const linkToQueue = (namespace: string, name: string, view: Pick<View, 'cluster'>): string => formatView({ ...viewAt('#queues', view), object: { namespace, name } });

/** A kind's table. The namespace and the search of another one are kept. */
export function linkToKind(kind: string, view: View): string {
  const to = pageOf(kind);
  if (view.page === to.page && view.kind === to.kind) return formatView({ ...view, object: undefined });
  return formatView({ ...viewAt('', view), ...to, namespace: view.namespace, search: view.search });
}

/** The other page with what both have in common: states and columns differ, namespace and search do not. */
export function linkTo(page: PageName, view: View): string {
  if (page === view.page && view.kind === '') return formatView({ ...view, object: undefined });
  return formatView({ ...viewAt(`#${page}`, view), namespace: view.namespace, search: view.search });
}

/** The tables that have a page of their own. */
export type TableName = 'jobs' | 'pods';

/** The table that is on screen, of those of jobs and pods. */
export function tableOf({ page, object }: View): TableName | undefined {
  return !object && (page === 'jobs' || page === 'pods') ? page : undefined;
}

const listeners = new Set<() => void>();
let current: View | undefined;
let currentHash: string | undefined;

function snapshot(): View {
  if (current === undefined || currentHash !== location.hash) {
    currentHash = location.hash;
    current = parseView(location.hash);
  }
  return current;
}

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  window.addEventListener('hashchange', listener);
  return () => {
    listeners.delete(listener);
    window.removeEventListener('hashchange', listener);
  };
}

/** Arrow keys run through a list of choices: all that is chosen of one filter within this time is one step, in milliseconds. */
const running = 1_000;
let last: { readonly filter: string; readonly hash: string; readonly at: number } | undefined;

/**
 * Changes part of the view. Filters are steps to go back from; a search is one from its first letter to its last. Anything else (the order,
 * what is shown of an object) changes in place.
 */
export function setView(change: Partial<View>): void {
  const before = snapshot();
  const after = { ...before, ...change };
  const hash = formatView(after);
  const changed = after.page === before.page ? filterNames.filter((name) => after[name] !== before[name]) : [];
  const filter = changed.join();
  const typing = filter === 'search' && before.search !== '' && after.search !== '';
  const goesOn = last?.filter === filter && last.hash === location.hash && Date.now() - last.at < running;
  if (filter === '' || typing || goesOn) history.replaceState(history.state, '', hash);
  else history.pushState(history.state, '', hash);
  last = filter === '' ? last && { ...last, hash } : { filter, hash, at: Date.now() };
  for (const listener of [...listeners]) listener();
}

export function useView(): View {
  return useSyncExternalStore(subscribe, snapshot);
}

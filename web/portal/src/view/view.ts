// What is on screen, kept in the address's fragment so that it survives a reload and can be shared:
// `#pods?ns=team-a&q=train&state=Running&sort=-age`, or `#jobs/team-a/train?tab=yaml` for one job. Without one it is the user's own page, `#mine`.
// Fragments never reach a server's log.

import { useSyncExternalStore } from 'react';

export interface View {
  readonly page: 'mine' | 'jobs' | 'pods';
  /** The one object that is shown, in place of the table. */
  readonly object: { readonly namespace: string; readonly name: string } | undefined;
  /** What is shown of the object; empty: what comes first. */
  readonly tab: string;
  /** Empty: all that the user may see. */
  readonly namespace: string;
  readonly search: string;
  /** Empty: every state. */
  readonly state: string;
  readonly sort: { readonly column: string; readonly descending: boolean };
}

const defaultSort = 'age';
const pages = ['mine', 'jobs', 'pods'] as const;

export function parseView(hash: string): View {
  const [path = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const [page, namespace, name] = path.split('/').map(decoded);
  const params = new URLSearchParams(query);
  const sort = params.get('sort') ?? defaultSort;
  return {
    page: pages.find((one) => one === page) ?? 'mine',
    object: page === 'jobs' && namespace && name ? { namespace, name } : undefined,
    tab: params.get('tab') ?? '',
    namespace: params.get('ns') ?? '',
    search: params.get('q') ?? '',
    state: params.get('state') ?? '',
    sort: { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') },
  };
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
  if (view.namespace) params.set('ns', view.namespace);
  if (view.search) params.set('q', view.search);
  if (view.state) params.set('state', view.state);
  const sort = (view.sort.descending ? '-' : '') + view.sort.column;
  if (sort !== defaultSort) params.set('sort', sort);
  if (view.object && view.tab) params.set('tab', view.tab);
  const query = params.toString();
  const object = view.object ? [view.object.namespace, view.object.name].map((part) => `/${encodeURIComponent(part)}`).join('') : '';
  return `#${view.page}${object}${query ? `?${query}` : ''}`;
}

/** A job's page. What the table shows is kept, for whoever goes back. */
export function linkToJob(namespace: string, name: string, view: View): string {
  return formatView({ ...(view.page === 'jobs' ? view : { ...parseView('#jobs'), namespace: view.namespace }), object: { namespace, name }, tab: '' });
}

/** The other page with what both have in common: states and columns differ, namespace and search do not. */
export function linkTo(page: View['page'], view: View): string {
  if (page === view.page) return formatView({ ...view, object: undefined });
  return formatView({ ...parseView(`#${page}`), namespace: view.namespace, search: view.search });
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

/** Changes part of the view in place: typing a search is no step to go back to. */
export function setView(change: Partial<View>): void {
  history.replaceState(null, '', formatView({ ...snapshot(), ...change }));
  for (const listener of [...listeners]) listener();
}

export function useView(): View {
  return useSyncExternalStore(subscribe, snapshot);
}

// What is on screen, kept in the address's fragment so that it survives a reload and can be shared:
// `#pods?ns=team-a&q=train&state=Running&sort=-age`. Fragments never reach a server's log.

import { useSyncExternalStore } from 'react';

export interface View {
  readonly page: 'jobs' | 'pods';
  /** Empty: all that the user may see. */
  readonly namespace: string;
  readonly search: string;
  /** Empty: every state. */
  readonly state: string;
  readonly sort: { readonly column: string; readonly descending: boolean };
}

const defaultSort = 'age';

export function parseView(hash: string): View {
  const [page = '', query = ''] = hash.replace(/^#/, '').split('?', 2);
  const params = new URLSearchParams(query);
  const sort = params.get('sort') ?? defaultSort;
  return {
    page: page === 'pods' ? 'pods' : 'jobs',
    namespace: params.get('ns') ?? '',
    search: params.get('q') ?? '',
    state: params.get('state') ?? '',
    sort: { column: sort.replace(/^-/, ''), descending: sort.startsWith('-') },
  };
}

export function formatView(view: View): string {
  const params = new URLSearchParams();
  if (view.namespace) params.set('ns', view.namespace);
  if (view.search) params.set('q', view.search);
  if (view.state) params.set('state', view.state);
  const sort = (view.sort.descending ? '-' : '') + view.sort.column;
  if (sort !== defaultSort) params.set('sort', sort);
  const query = params.toString();
  return `#${view.page}${query ? `?${query}` : ''}`;
}

/** The other page with what both have in common: states and columns differ, namespace and search do not. */
export function linkTo(page: View['page'], view: View): string {
  if (page === view.page) return formatView(view);
  return formatView({ ...parseView(''), page, namespace: view.namespace, search: view.search });
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

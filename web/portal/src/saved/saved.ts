// Tables' addresses that somebody has saved under a name. This browser keeps them, of each user and gateway its own, for all tabs.

import { useContext, useSyncExternalStore } from 'react';
import { ownName } from '../session/base.ts';
import { User } from '../session/user.ts';
import { formatView, parseView, type View } from '../view/view.ts';

export interface SavedView {
  /** Whatever somebody has typed. No two have the same. */
  readonly name: string;
  /** The address's fragment. */
  readonly at: string;
}

export const most = 50;
export const longestName = 100;

/** Why nothing was saved: there are as many as there may be, another has the name, it has gone meanwhile, or the browser keeps nothing (more). */
export type Refusal = 'many' | 'taken' | 'gone' | 'refused';

/** The address of a table; undefined: a page that is none. */
export function tableAt(view: View): string | undefined {
  const { page, kind, object, unknown } = view;
  const isTable = page === 'jobs' || page === 'pods' || page === 'history' || (page === 'kinds' && kind !== '');
  return isTable && !object && !unknown ? formatView(view) : undefined;
}

/** A name as it is kept: what cannot be seen at its ends, or told apart by anybody, is no part of it. */
export const nameOf = (typed: string): string => typed.normalize('NFC').replace(/\s+/g, ' ').trim().slice(0, longestName);

/** Whoever wrote there, what comes out are names and addresses of tables. */
export function parse(kept: string): readonly SavedView[] {
  let all: unknown;
  try {
    all = JSON.parse(kept);
  } catch {
    return [];
  }
  const found = new Map<string, SavedView>();
  for (const one of Array.isArray(all) ? (all as readonly unknown[]) : []) {
    const { name, at } = (one ?? {}) as { readonly name?: unknown; readonly at?: unknown };
    const own = typeof name === 'string' ? nameOf(name) : '';
    const address = typeof at === 'string' && at.startsWith('#') ? tableAt(parseView(at)) : undefined;
    if (own !== '' && address !== undefined && found.size < most && !found.has(own)) found.set(own, { name: own, at: address });
  }
  return [...found.values()];
}

export class SavedViews {
  readonly #key: string;
  readonly #storage: () => Storage;
  readonly #listeners = new Set<() => void>();
  #read = '';
  #views: readonly SavedView[] = [];

  /** Of a user whom nobody can name the tab alone keeps them: their token is in it alone, too, and who comes after them is somebody else. */
  constructor(user: string) {
    this.#key = ownName(`kubecast.views.${user}`);
    this.#storage = () => (user === '' ? sessionStorage : localStorage);
  }

  readonly getSnapshot = (): readonly SavedView[] => {
    let kept = '';
    try {
      kept = this.#storage().getItem(this.#key) ?? '';
    } catch {
      // the browser keeps nothing for this page
    }
    if (kept !== this.#read) {
      this.#read = kept;
      this.#views = parse(kept);
    }
    return this.#views;
  };

  readonly subscribe = (listener: () => void): (() => void) => {
    const elsewhere = ({ key }: StorageEvent): void => {
      if (key === this.#key || key === null) listener();
    };
    this.#listeners.add(listener);
    window.addEventListener('storage', elsewhere);
    return () => {
      this.#listeners.delete(listener);
      window.removeEventListener('storage', elsewhere);
    };
  };

  add(name: string, at: string): Refusal | undefined {
    return this.#change((views) => (views.some((one) => one.name === name) ? 'taken' : views.length >= most ? 'many' : [...views, { name, at }]));
  }

  rename(before: string, name: string): Refusal | undefined {
    return this.#change((views) => {
      if (!views.some((one) => one.name === before)) return 'gone';
      if (name !== before && views.some((one) => one.name === name)) return 'taken';
      return views.map((one) => (one.name === before ? { ...one, name } : one));
    });
  }

  overwrite(name: string, at: string): Refusal | undefined {
    return this.#change((views) => (views.some((one) => one.name === name) ? views.map((one) => (one.name === name ? { name, at } : one)) : 'gone'));
  }

  remove(name: string): Refusal | undefined {
    return this.#change((views) => views.filter((one) => one.name !== name));
  }

  /** Of what is kept now: another tab may have changed it. */
  #change(to: (views: readonly SavedView[]) => readonly SavedView[] | Refusal): Refusal | undefined {
    const next = to(this.getSnapshot());
    if (typeof next === 'string') return next;
    try {
      this.#storage().setItem(this.#key, JSON.stringify(next));
    } catch {
      return 'refused';
    }
    for (const listener of [...this.#listeners]) listener();
    return undefined;
  }
}

const known = new Map<string, SavedViews>();

/** Those of who is signed in. */
export function useSaved(): readonly [readonly SavedView[], SavedViews] {
  const user = useContext(User);
  const saved = known.get(user) ?? new SavedViews(user);
  known.set(user, saved);
  return [useSyncExternalStore(saved.subscribe, saved.getSnapshot), saved];
}

/** The saved view that is on screen. Of several with the same address, the first. */
export const shownOf = (views: readonly SavedView[], view: View): SavedView | undefined => {
  const at = tableAt(view);
  return at === undefined ? undefined : views.find((one) => one.at === at);
};

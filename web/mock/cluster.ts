// The API server's side of the mock: objects, versions, and a log of changes to replay.

import type { KubeObject } from '@kubecast/sdk';

export interface Change {
  readonly version: number;
  readonly resource: string;
  readonly object: KubeObject;
  /** The object before it; undefined if it was not there. */
  readonly before: KubeObject | undefined;
  readonly how: 'added' | 'modified' | 'deleted';
}

/** An object before it is stored: uid and version are given here. */
export type Draft = Omit<KubeObject, 'metadata'> & {
  readonly spec?: unknown;
  readonly status?: unknown;
  readonly metadata: Omit<KubeObject['metadata'], 'uid'> & { readonly uid?: string };
};

export class MockCluster {
  version = 100;
  /** Positions below it cannot be replayed. */
  floor = 100;
  readonly log: Change[] = [];
  readonly watchers = new Set<(change: Change) => void>();
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  #uids = 0;

  list(resource: string): KubeObject[] {
    return [...(this.#objects.get(resource)?.values() ?? [])];
  }

  put(resource: string, draft: Draft): KubeObject {
    const version = ++this.version;
    const uid = draft.metadata.uid ?? `00000000-0000-4000-8000-${String(++this.#uids).padStart(12, '0')}`;
    const object = { ...draft, metadata: { ...draft.metadata, uid, resourceVersion: String(version) } };
    const objects = this.#objects.get(resource) ?? new Map<string, KubeObject>();
    const before = objects.get(uid);
    this.#objects.set(resource, objects.set(uid, object));
    this.#record({ version, resource, object, before, how: before ? 'modified' : 'added' });
    return object;
  }

  remove(resource: string, uid: string): void {
    const objects = this.#objects.get(resource);
    const last = objects?.get(uid);
    if (!objects || !last) return;
    objects.delete(uid);
    const version = ++this.version;
    const object = { ...last, metadata: { ...last.metadata, resourceVersion: String(version) } };
    this.#record({ version, resource, object, before: last, how: 'deleted' });
  }

  /** Forgets the history, so that every older position is answered with `reset`. */
  compact(): void {
    this.floor = this.version;
    this.log.length = 0;
  }

  #record(change: Change): void {
    this.log.push(change);
    for (const watcher of this.watchers) watcher(change);
  }
}

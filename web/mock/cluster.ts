// The API server's side of the mock: objects, versions, and a log of changes to replay.

import type { KubeObject } from '@kubecast/sdk';
import { idOf, type MockKind } from './documents.ts';
import { asBefore, withStatus } from './status.ts';

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
  /** In a word what it is doing; without it, what the gateway would derive. */
  readonly $status?: string;
  /** As of a ConfigMap. */
  readonly data?: unknown;
  readonly metadata: Omit<KubeObject['metadata'], 'uid'> & { readonly uid?: string };
};

export class MockCluster {
  #version = 100;
  /** Positions below it cannot be replayed. */
  floor = 100;
  readonly log: Change[] = [];
  /** The kinds of which there were objects that say theirs, as `jobs.batch`. */
  readonly kinds = new Map<string, MockKind>();
  readonly watchers = new Set<(change: Change) => void>();
  readonly #objects = new Map<string, Map<string, KubeObject>>();
  /** Of the kind, the group, the namespace and the name: the uid of what has it. */
  readonly #named = new Map<string, string>();
  /** While the cluster is away: what was there when it went, and what has happened since. */
  #held: { readonly version: number; readonly objects: ReadonlyMap<string, ReadonlyMap<string, KubeObject>>; readonly changes: Change[] } | undefined;
  #uids = 0;

  /** What is known of it. */
  get version(): number {
    return this.#held?.version ?? this.#version;
  }

  /** From now on nobody hears of changes, until what is returned is called: then they are told. */
  hold(): () => void {
    if (this.#held) return () => undefined;
    const objects = new Map([...this.#objects].map(([resource, of]) => [resource, new Map(of)]));
    const held = { version: this.#version, objects, changes: [] as Change[] };
    this.#held = held;
    return () => {
      if (this.#held !== held) return;
      this.#held = undefined;
      for (const change of held.changes) this.#tell(change);
    };
  }

  /** @param group of the kind; undefined, and of objects that do not say theirs: whichever */
  list(resource: string, group?: string): KubeObject[] {
    const all = [...((this.#held?.objects ?? this.#objects).get(resource)?.values() ?? [])];
    return group === undefined ? all : all.filter((object) => isOf(object, group));
  }

  /** The object with a uid, of whatever kind. */
  find(uid: string): KubeObject | undefined {
    for (const objects of (this.#held?.objects ?? this.#objects).values()) {
      const found = objects.get(uid);
      if (found) return found;
    }
    return undefined;
  }

  /**
   * An object is there, or has changed: what has its name and namespace is the same object, unless `metadata.uid` is another one, which replaces it.
   * @param resource the plural, without the group: `jobs`. The group is that of `apiVersion`
   */
  put(resource: string, draft: Draft): KubeObject {
    const singular = resource === draft.kind?.toLowerCase() && !resource.endsWith('s'); // Endpoints are their own plural
    if (singular || !/^[a-z][a-z0-9-]*$/.test(resource)) throw new TypeError(`put: ${JSON.stringify(resource)} is not the plural of a kind without its group, such as "jobs"`);
    const named = nameOf(resource, draft);
    const known = this.#named.get(named);
    const uid = draft.metadata.uid ?? known ?? `00000000-0000-4000-8000-${String(++this.#uids).padStart(12, '0')}`;
    if (known !== undefined && known !== uid) this.remove(resource, known);
    this.#named.set(named, uid);
    const version = ++this.#version;
    const object: KubeObject = withStatus(kindOf(resource, draft), { ...draft, metadata: { ...draft.metadata, uid, resourceVersion: String(version) } });
    const objects = this.#objects.get(resource) ?? new Map<string, KubeObject>();
    const before = objects.get(uid);
    this.#objects.set(resource, objects.set(uid, object));
    this.#learn(resource, object);
    this.#record({ version, resource, object, before, how: before ? 'modified' : 'added' });
    return object;
  }

  remove(resource: string, uid: string): void {
    const objects = this.#objects.get(resource);
    const last = objects?.get(uid);
    if (!objects || !last) return;
    objects.delete(uid);
    this.#named.delete(nameOf(resource, last));
    const version = ++this.#version;
    const object = asBefore(last, { ...last.metadata, resourceVersion: String(version) });
    this.#record({ version, resource, object, before: last, how: 'deleted' });
  }

  /** Something happened elsewhere. */
  skip(): void {
    this.#version++;
  }

  /** Forgets the history, so that every older position is answered with `reset`. */
  compact(): void {
    this.floor = this.version;
    this.log.length = 0;
  }

  #learn(plural: string, { apiVersion, kind, metadata }: KubeObject): void {
    if (!apiVersion || !kind) return;
    const [version = '', group = ''] = apiVersion.split('/').reverse();
    const id = idOf({ group, plural });
    if (!this.kinds.has(id)) this.kinds.set(id, { group, version, plural, kind, namespaced: metadata.namespace !== undefined });
  }

  #record(change: Change): void {
    if (this.#held) this.#held.changes.push(change);
    else this.#tell(change);
  }

  #tell(change: Change): void {
    this.log.push(change);
    for (const watcher of this.watchers) watcher(change);
  }
}

/** As `jobs.batch`. Jobs that do not say whose they are are Kubernetes' own. */
const kindOf = (plural: string, { apiVersion }: Draft): string => (apiVersion === undefined ? (plural === 'jobs' ? 'jobs.batch' : plural) : idOf({ group: apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '', plural }));

const nameOf = (resource: string, { apiVersion = '', metadata: { namespace = '', name } }: Draft | KubeObject): string =>
  `${resource}.${apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : ''}/${namespace}/${name}`;

/** Whether an object is of a group's kind, as far as it says so: plurals are not of one group only. */
export function isOf({ apiVersion }: KubeObject, group: string): boolean {
  return !apiVersion || (apiVersion.includes('/') ? apiVersion.slice(0, apiVersion.indexOf('/')) : '') === group;
}
